/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Replies that the core begins and an executor extends. These functions leave text_end to their caller, so a cut reply
 * has only one error line.
 */
#ifndef SOFTSWITCH_CONTROL_H
#define SOFTSWITCH_CONTROL_H

#include "core.h"
#include "text.h"

void control_program(const struct core *core, struct text *text);
void control_stats(const struct core *core, struct text *text);

#endif
