/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Links: transmission times at a rate, and the smallest propagation delay of all ports.
 */
#ifndef SOFTSWITCH_LINK_H
#define SOFTSWITCH_LINK_H

#include "core.h"

/* The time at which the link becomes free: exactly free_ns + carry / rate_bps ns. */
struct link_clock {
	uint64_t free_ns;
	uint64_t carry; /* fraction of a ns in units of 1 / rate_bps: less than rate_bps */
};

/* An access link that several flows, source ports or source addresses share. */
struct shared_link {
	uint64_t rate_bps;
	struct link_clock clock;
};

struct flow;
struct port;

/* Whether a frame that is ready at ready_ns waits for the end of the previous transmission. */
static inline bool link_is_busy(const struct link_clock *clock, uint64_t ready_ns)
{
	return ready_ns < clock->free_ns || (ready_ns == clock->free_ns && ready_ns);
}

uint64_t link_wire_bits(uint32_t frame_bytes);
/* Transmits wire_bits, starting at ready_ns or when the link becomes free, whichever is later. Sets *finish to the end.
 * Returns whether the transmission starts right after the previous one; false if rate_bps is 0.
 */
bool link_serve(const struct link_clock *clock, uint64_t rate_bps, uint64_t ready_ns, uint64_t wire_bits,
		struct link_clock *finish);
uint64_t link_access(struct core *core, struct port *port, struct flow *flow, uint64_t arrival_ns,
		     uint32_t frame_bytes);

/* Updates core_lookahead_ns after a change of ports, delays or mirror sessions, and after the first packet of a port
 * that is no clone.
 */
void link_find_lookahead(struct core *core);

#endif
