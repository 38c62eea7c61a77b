/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Links in virtual time: how long a frame occupies one, exactly, and how long it travels. A rate of 0 is no
 * bound.
 */
#include "link.h"
#include "core_state.h"
#include "freestanding.h"

uint64_t link_wire_bits(uint32_t frame_bytes)
{
	if (frame_bytes < CORE_ETHERNET_MIN_BYTES)
		frame_bytes = CORE_ETHERNET_MIN_BYTES;
	return (uint64_t)(frame_bytes + CORE_ETHERNET_OVERHEAD_BYTES) * 8;
}

/* wire_bits is below 2^20 and rate_bps at most 10^15 (control.c), so the product and the sum fit into 64
 * bits. */
bool link_serve(const struct link_clock *clock, uint64_t rate_bps, uint64_t ready_ns, uint64_t wire_bits,
		struct link_clock *finish)
{
	bool waits = ready_ns < clock->free_ns || (ready_ns == clock->free_ns && ready_ns);
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

/* When a frame that was sent into its access link at arrival_ns comes to the switch. A flow with an access
 * rate of its own has a link of its own, in place of the port's.
 */
uint64_t link_access(struct port *port, struct flow *flow, uint64_t arrival_ns, uint32_t frame_bytes)
{
	bool own = flow && flow->access_bps;
	struct link_clock *clock = own ? &flow->access : &port->access;
	uint64_t rate_bps = own ? flow->access_bps : port->access_bps;

	if (likely(!rate_bps))
		return arrival_ns;
	link_serve(clock, rate_bps, arrival_ns, link_wire_bits(frame_bytes), clock);
	return clock->free_ns;
}

/* Only copies leave here. */
static bool is_mirror_port(const struct core *core, uint32_t port)
{
	if (core->ports[port].carries_data)
		return false;
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
