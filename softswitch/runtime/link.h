/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Links: when one is free again, and when a frame has gone through.
 */
#ifndef SOFTSWITCH_LINK_H
#define SOFTSWITCH_LINK_H

#include "core.h"

/* When a link of a rate is free again: exactly free_ns + carry / rate_bps ns. */
struct link_clock {
	uint64_t free_ns;
	uint64_t carry; /* in ns / rate_bps: less than rate_bps */
};

struct flow;
struct port;

uint64_t link_wire_bits(uint32_t frame_bytes);
/* The link serves wire_bits from ready_ns on, or from when it is free: *finish is when it has. True: it had
 * to wait, or went on without a gap.
 */
bool link_serve(const struct link_clock *clock, uint64_t rate_bps, uint64_t ready_ns, uint64_t wire_bits,
		struct link_clock *finish);
uint64_t link_access(struct port *port, struct flow *flow, uint64_t arrival_ns, uint32_t frame_bytes);

/* After a change of anything that core_lookahead_ns depends on. */
void link_find_lookahead(struct core *core);

#endif
