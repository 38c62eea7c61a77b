/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The core's counters.
 */
#ifndef SOFTSWITCH_STATS_H
#define SOFTSWITCH_STATS_H

#include "core.h"
#include "text.h"

void stats_write(const struct core *core, struct text *text);

#endif
