/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Requests for the settings of flows and of shared access links.
 */
#ifndef SOFTSWITCH_FLOW_CONTROL_H
#define SOFTSWITCH_FLOW_CONTROL_H

#include "core.h"
#include "text.h"

/* Answers a request `flow ...`; its first word has been read already. Returns the length of the reply. */
size_t flow_control(struct core *core, struct words *words, struct text *text);
/* The same for a request `link ...`. */
size_t flow_link_control(struct core *core, struct words *words, struct text *text);

#endif
