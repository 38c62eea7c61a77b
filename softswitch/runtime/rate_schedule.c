/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Transmission over a link whose rate follows a schedule. The end of a transmission is computed when it starts: the
 * whole schedule is known then, so a step needs no event of its own.
 *
 * Steps: work is in units of 10^-9 bit, the work of one ns at 1 bit/s. A clock's carry is the work that is left at
 * free_ns, whatever the rate, because steps are at whole ns.
 *
 * Opportunities, as Mahimahi's link (Netravali et al. 2015): a packet that is queued before an opportunity's instant uses
 * its bytes; a packet larger than them waits for the next opportunity with its remaining bytes. All opportunities of an
 * instant count as one. Bytes that find the queue empty are lost. A clock's carry is the number of bytes that
 * the packets have left of the opportunity at free_ns. The schedule repeats after its last entry.
 */
#include "../../lib/frames.h"
#include "core_state.h"
#include "dynamics.h"
#include "freestanding.h"

/* The number of the first entry later than at_ns; count: none is. */
static uint32_t entry_after(const struct rate_schedule *schedule, uint64_t at_ns)
{
	uint32_t low = 0, high = schedule->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (schedule->entries[middle].at_ns > at_ns)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* The last step has a rate (schedule_start), so the loop ends with a rate unless no work is left. No overflow: the work
 * is below 2^51, and it is compared with a product only after a division.
 */
static struct link_clock serve_steps(const struct rate_schedule *schedule, uint64_t before_bps,
				     uint64_t start_ns, uint64_t work)
{
	uint64_t now_ns = start_ns, rate_bps = before_bps;
	uint32_t next = 0;

	if (start_ns >= schedule->start_ns) {
		next = entry_after(schedule, start_ns - schedule->start_ns);
		rate_bps = schedule->entries[next - 1].value;
	}
	for (; work && next < schedule->count; next++) {
		uint64_t step_ns = schedule->start_ns + schedule->entries[next].at_ns;

		if (rate_bps && work / rate_bps < step_ns - now_ns)
			break;
		work -= rate_bps * (step_ns - now_ns);
		now_ns = step_ns;
		rate_bps = schedule->entries[next].value;
	}
	return work ? (struct link_clock){now_ns + work / rate_bps, work % rate_bps}
		    : (struct link_clock){now_ns, 0};
}

/* Opportunities later than after_ns, until they have room for the bytes that do not fit in the `left` bytes of the one
 * at after_ns.
 */
static struct link_clock serve_opportunities(const struct rate_schedule *schedule, uint64_t after_ns,
					     uint64_t left_bytes, uint64_t bytes)
{
	uint64_t period_ns = schedule->entries[schedule->count - 1].at_ns;
	uint64_t since_ns = after_ns > schedule->start_ns ? after_ns - schedule->start_ns : 0;
	uint64_t turn_ns = schedule->start_ns + since_ns / period_ns * period_ns;
	uint32_t next = entry_after(schedule, since_ns % period_ns);

	while (left_bytes < bytes) {
		bytes -= left_bytes;
		after_ns = turn_ns + schedule->entries[next].at_ns;
		left_bytes = schedule->entries[next].value * OPPORTUNITY_BYTES;
		if (++next == schedule->count) {
			turn_ns += period_ns;
			next = 0;
		}
	}
	return (struct link_clock){after_ns, left_bytes - bytes};
}

static uint64_t later(uint64_t a_ns, uint64_t b_ns)
{
	return a_ns > b_ns ? a_ns : b_ns;
}

bool rate_serve(const struct rate_schedule *schedule, const struct port *port,
		const struct core_packet *packet, uint64_t permille, uint64_t now_ns,
		struct link_clock *finish)
{
	const struct link_clock *clock = &port->link;
	uint64_t ready_ns = packet->enqueue_ns;
	bool waits = link_is_busy(clock, ready_ns);
	uint64_t start_ns = waits ? clock->free_ns : ready_ns;
	uint64_t wire_bits = link_wire_bits(packet->queue_bytes) * permille / 1000;
	uint32_t ip_bytes = packet->queue_bytes > ETHERNET_BYTES ? packet->queue_bytes - ETHERNET_BYTES : 1;
	uint64_t left_bytes;

	if (start_ns < schedule->start_ns && (schedule->opportunities || !port->rate_bps)) {
		waits = link_serve(clock, port->rate_bps, ready_ns, wire_bits, finish);
		if (schedule->opportunities)
			finish->carry = 0; /* of a ns, not of an opportunity */
		return waits;
	}
	if (!schedule->opportunities) {
		*finish = serve_steps(schedule, port->rate_bps, start_ns,
				      wire_bits * 1000000000 + (waits ? clock->carry : 0));
		return waits;
	}
	/* If egress dropped the packet that was to use an opportunity at now_ns, the next packet uses it instead, if it
	 * was queued before. Earlier opportunities are past. */
	left_bytes = clock->free_ns == now_ns && ready_ns < now_ns ? clock->carry : 0;
	*finish = serve_opportunities(schedule, later(later(clock->free_ns, ready_ns), now_ns - 1),
				      left_bytes, ip_bytes * permille / 1000);
	return waits;
}
