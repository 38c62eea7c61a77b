/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Requests for links that change during a run.
 */
#ifndef SOFTSWITCH_DYNAMICS_CONTROL_H
#define SOFTSWITCH_DYNAMICS_CONTROL_H

#include "core.h"
#include "text.h"

struct port;

/* Each answers a request; its first word has been read. */
size_t schedule_control(struct core *core, struct words *words, struct text *text);
size_t loss_control(struct core *core, struct words *words, struct text *text);
size_t jitter_control(struct core *core, struct words *words, struct text *text);

/* The lines of `port show`; none for a port that never had a schedule, loss or jitter. */
void dynamics_show(const struct core *core, const struct port *port, struct text *text);

#endif
