/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Updates of the model after lost or marked packets. */
#ifndef BBR3_LOSSES_H
#define BBR3_LOSSES_H

#include "history.h"
#include "states.h"

static bool is_inflight_too_high(const struct sock *sk, const struct sample *rs)
{
	return (u64)rs->lost * 100 > (u64)rs->tx_in_flight * LOSS_THRESH_PERCENT ||
	       (rs->lost && !tcp_is_sack(tcp_sk(sk)));
}

static void handle_inflight_too_high(struct sock *sk, const struct sample *rs)
{
	struct bbr3 *bbr = of(sk);

	bbr->prev_probe_too_high = true;
	bbr->is_bw_probe_sample = false; /* one reaction per probe */
	if (!rs->is_app_limited)
		bbr->inflight_longterm =
			max_t(u32, rs->tx_in_flight, percent_of(target_inflight(sk), BETA_PERCENT));
	if (bbr->state == PROBE_BW_UP) {
		bbr->undo_state = PROBE_BW_UP;
		start_down(sk);
	}
}

static void note_loss(struct sock *sk)
{
	struct bbr3 *bbr = of(sk);

	if (!bbr->is_loss_in_round) {
		bbr->loss_round_delivered = tcp_sk(sk)->delivered;
		save_state_upon_loss(sk);
	}
	bbr->is_loss_in_round = true;
}

/* The packets in flight at which the loss rate crossed the threshold: a point within the last `size` lost packets. */
static u32 inflight_at_loss(const struct sample *rs, u32 size)
{
	s64 before = (s64)rs->tx_in_flight - size, lost_before = (s64)rs->lost - size;
	s64 prefix = div_s64(LOSS_THRESH_PERCENT * before - 100 * lost_before, 100 - LOSS_THRESH_PERCENT);

	return max_t(s64, before + max_t(s64, prefix, 0), 1);
}

/* `lost` is C.lost after this packet. */
static void handle_lost_packet(struct sock *sk, const struct sk_buff *skb, u32 lost)
{
	struct bbr3 *bbr = of(sk);
	const struct transmission *sent = transmission(bbr, TCP_SKB_CB(skb)->tx.delivered);
	struct sample rs = {
		.tx_in_flight = sent->in_flight,
		.lost = lost - sent->lost,
		.is_app_limited = TCP_SKB_CB(skb)->tx.is_app_limited,
	};

	if (!bbr->is_bw_probe_sample || !is_inflight_too_high(sk, &rs))
		return;
	rs.tx_in_flight = inflight_at_loss(&rs, tcp_skb_pcount(skb));
	handle_inflight_too_high(sk, &rs);
}

/* Calls handle_lost_packet for each packet that was marked lost since the previous ACK and still waits for its
 * retransmission. We assume that the packets that earlier ACKs marked come first in the queue, and skip them. If no
 * packet waits, the ACK's own sample decides.
 */
static void handle_losses(struct sock *sk, const struct sample *rs)
{
	struct bbr3 *bbr = of(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 lost = tp->lost - rs->newly_lost, waiting = tp->lost_out - min(tp->retrans_out, tp->lost_out);
	u32 earlier = waiting > rs->newly_lost ? waiting - rs->newly_lost : 0, last_end = 0;
	struct sk_buff *skb = tp->retransmit_skb_hint ?: tcp_rtx_queue_head(sk);
	bool some = false;

	note_loss(sk);
	skb_rbtree_walk_from(skb)
	{
		const struct tcp_skb_cb *cb = TCP_SKB_CB(skb);

		if (lost == tp->lost)
			break;
		if (!(cb->sacked & TCPCB_LOST) || cb->sacked & (TCPCB_SACKED_ACKED | TCPCB_SACKED_RETRANS))
			continue;
		if (earlier) {
			earlier -= min_t(u32, earlier, tcp_skb_pcount(skb));
			continue;
		}
		if (!some || cb->seq != last_end)
			bbr->loss_ranges++;
		some = true;
		last_end = cb->end_seq;
		lost += min_t(u32, tcp_skb_pcount(skb), tp->lost - lost);
		handle_lost_packet(sk, skb, lost);
	}
	if (some)
		return;
	bbr->loss_ranges++;
	if (bbr->is_bw_probe_sample && is_inflight_too_high(sk, rs))
		handle_inflight_too_high(sk, rs);
}

static void handle_ce(struct sock *sk, const struct sample *rs)
{
	struct bbr3 *bbr = of(sk);

	bbr->has_ce = false;
	note_loss(sk);
	if (bbr->is_bw_probe_sample)
		handle_inflight_too_high(sk, rs);
	if (bbr->state != STARTUP)
		return;
	bbr->full_bw_reached = true;
	bbr->inflight_longterm = max(bdp_multiple(bbr, bbr->bw, 100), bbr->inflight_latest);
}

#endif
