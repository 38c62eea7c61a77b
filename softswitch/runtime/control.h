/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Replies of the core that an executor continues with lines of its own. The caller ends the text, so a reply that is cut
 * ends once.
 */
#ifndef SOFTSWITCH_CONTROL_H
#define SOFTSWITCH_CONTROL_H

#include "core.h"
#include "text.h"

void control_program(const struct core *core, struct text *text);
void control_stats(const struct core *core, struct text *text);

#endif
