/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Replies of the core to which an executor adds lines. Only the executor ends the text, so a cut reply has one error
 * line.
 */
#ifndef SOFTSWITCH_CONTROL_H
#define SOFTSWITCH_CONTROL_H

#include "core.h"
#include "text.h"

void control_program(const struct core *core, struct text *text);
void control_stats(const struct core *core, struct text *text);

#endif
