/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Packets in flight and packets lost at the time when a packet was sent. */
#ifndef BBR3_HISTORY_H
#define BBR3_HISTORY_H

#include "state.h"

static struct transmission *entry(struct bbr3 *bbr, u32 age)
{
	return bbr->history + (bbr->newest - age) % HISTORY;
}

/* The newest entry that is not newer than the packet. A packet older than every entry gets the oldest entry. */
static const struct transmission *transmission(struct bbr3 *bbr, u32 delivered)
{
	u32 least = 0, most = bbr->entries - 1;

	while (least < most) {
		u32 age = (least + most) / 2;

		if (after(entry(bbr, age)->delivered, delivered))
			least = age + 1;
		else
			most = age;
	}
	return entry(bbr, least);
}

/* At the start of an ACK: packets sent since the previous ACK belong to the newest entry. */
static void note_transmissions(struct bbr3 *bbr, const struct tcp_sock *tp)
{
	struct transmission *newest = entry(bbr, 0);

	newest->in_flight = max(newest->in_flight, bbr->in_flight + (tp->data_segs_out - bbr->segs_out));
}

/* At the end of an ACK: packets sent from now on belong to a new entry, if at least one packet and 1/128 of the packets
 * in flight were delivered since the newest entry began. Otherwise they belong to the newest entry.
 */
static void note_ack(struct bbr3 *bbr, const struct tcp_sock *tp)
{
	bbr->segs_out = tp->data_segs_out;
	bbr->in_flight = tcp_packets_in_flight(tp);
	if (tp->delivered - entry(bbr, 0)->delivered < max(bbr->in_flight / (HISTORY / 2), 1U))
		return;
	bbr->newest = (bbr->newest + 1) % HISTORY;
	bbr->entries = min_t(u32, bbr->entries + 1, HISTORY);
	*entry(bbr, 0) = (struct transmission){tp->delivered, tp->lost, bbr->in_flight};
}

#endif
