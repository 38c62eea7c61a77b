/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Links in virtual time: exact transmission times, and the smallest propagation delay of all ports. A rate of 0
 * is unlimited.
 */
#include "link.h"
#include "../../lib/frames.h"
#include "core_state.h"
#include "freestanding.h"

uint64_t link_wire_bits(uint32_t frame_bytes)
{
	if (frame_bytes < LEAST_FRAME_BYTES)
		frame_bytes = LEAST_FRAME_BYTES;
	return (uint64_t)(frame_bytes + WIRE_EXTRA_BYTES) * 8;
}

/* No overflow of 64 bits: wire_bits is below 2^20, and rate_bps at most 10^15 (request.h). */
bool link_serve(const struct link_clock *clock, uint64_t rate_bps, uint64_t ready_ns, uint64_t wire_bits,
		struct link_clock *finish)
{
	bool waits = link_is_busy(clock, ready_ns);
	uint64_t start_ns = waits ? clock->free_ns : ready_ns;
	uint64_t numerator;

	if (!rate_bps) {
		finish->free_ns = start_ns;
		finish->carry = 0;
		return false;
	}
	numerator = wire_bits * 1000000000 + (waits ? clock->carry : 0);
	finish->free_ns = start_ns + numerator / rate_bps;
	finish->carry = numerator % rate_bps;
	return waits;
}

/* The time at which a frame that enters its access link at arrival_ns reaches the switch. A flow may use a shared
 * access link, or have an access rate and so a link of its own; all other frames share the link of their port. A link
 * without a rate causes no delay.
 */
uint64_t link_access(struct core *core, struct port *port, struct flow *flow, uint64_t arrival_ns,
		     uint32_t frame_bytes)
{
	struct link_clock *clock = &port->access;
	uint64_t rate_bps = port->access_bps;

	if (flow && flow->link) {
		clock = &core->links[flow->link].clock;
		rate_bps = core->links[flow->link].rate_bps;
	} else if (flow && flow->access_bps) {
		clock = &flow->access;
		rate_bps = flow->access_bps;
	}
	if (likely(!rate_bps))
		return arrival_ns;
	link_serve(clock, rate_bps, arrival_ns, link_wire_bits(frame_bytes), clock);
	return clock->free_ns;
}

/* Whether a mirror session or the watch sends to the port, and no packet but clones has been queued at the port so far. */
static bool is_mirror_port(const struct core *core, uint32_t port)
{
	if (core->ports[port].carries_data)
		return false;
	if (core->watching && core->watch.collector == port)
		return true;
	for (uint32_t index = 0; index < CORE_MIRROR_SESSIONS; index++)
		if (core->mirrors[index].set && core->mirrors[index].port == port)
			return true;
	return false;
}

void link_find_lookahead(struct core *core)
{
	uint64_t least_ns = CORE_NEVER_NS;

	for (uint32_t port = 0; port < PIPELINE_PORTS; port++)
		if (core->ports[port].attached && core->ports[port].delay_ns < least_ns &&
		    !is_mirror_port(core, port))
			least_ns = core->ports[port].delay_ns;
	core->lookahead_ns = least_ns == CORE_NEVER_NS ? 0 : least_ns;
}
