/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Replies that the core begins and an executor extends. These functions leave text_end to their caller, so a cut reply
 * has only one error line.
 */
#ifndef SOFTSWITCH_CONTROL_H
#define SOFTSWITCH_CONTROL_H

#include "core.h"
#include "text.h"

struct port;

/* The attached port that the next word names, and its number. NULL: it names none. */
struct port *control_read_port(struct core *core, struct words *words, uint64_t *number);
void control_program(const struct core *core, struct text *text);
void control_stats(const struct core *core, struct text *text);

/* flow_control.c: answer a request `flow ...` or `link ...`, whose first word has been read already. Return the length
 * of the reply. */
size_t flow_control(struct core *core, struct words *words, struct text *text);
size_t flow_link_control(struct core *core, struct words *words, struct text *text);

#endif
