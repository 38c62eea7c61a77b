/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Requests that concern tables: list, set, delete, default, dump.
 */
#ifndef SOFTSWITCH_P4_TABLE_CONTROL_H
#define SOFTSWITCH_P4_TABLE_CONTROL_H

#include "p4_request.h"

/* Answers a request whose first word is `table`. The next word to read is the second. */
void p4_control_table(struct p4_request *request);

#endif
