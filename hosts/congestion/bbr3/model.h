/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The updates of the model by each ACK: rounds, rate, volume, aggregation of ACKs, the end of Startup. */
#ifndef BBR3_MODEL_H
#define BBR3_MODEL_H

#include "losses.h"

static void update_latest_delivery_signals(struct sock *sk, const struct sample *rs)
{
	struct bbr3 *bbr = of(sk);

	bbr->loss_round_start = false;
	if (!rs->rate)
		return;
	bbr->bw_latest = max(bbr->bw_latest, rs->rate);
	bbr->inflight_latest = max(bbr->inflight_latest, rs->delivered);
	if (before(rs->prior_delivered, bbr->loss_round_delivered))
		return;
	bbr->loss_round_delivered = tcp_sk(sk)->delivered;
	bbr->loss_round_start = true;
}

static void update_round(struct sock *sk, const struct sample *rs)
{
	struct bbr3 *bbr = of(sk);

	bbr->round_start = rs->rate && !before(rs->prior_delivered, bbr->next_round_delivered);
	if (!bbr->round_start)
		return;
	start_round(sk);
	bbr->round_count++;
	bbr->rounds_since_probe_up++;
}

static u64 max_bw(const struct bbr3 *bbr)
{
	return max(bbr->max_bw_slots[0], bbr->max_bw_slots[1]);
}

static void advance_max_bw_filter(struct bbr3 *bbr)
{
	if (!bbr->max_bw_slots[1])
		return;
	bbr->max_bw_slots[0] = bbr->max_bw_slots[1];
	bbr->max_bw_slots[1] = 0;
}

/* After a round with losses, unless probing: lower the bounds to the rate and volume that the round delivered, but not
 * below BETA times their values.
 */
static void adapt_lower_bounds(struct sock *sk)
{
	struct bbr3 *bbr = of(sk);

	if (!bbr->is_loss_in_round || bbr->state == STARTUP || bbr->state == PROBE_BW_REFILL ||
	    bbr->state == PROBE_BW_UP)
		return;
	if (bbr->bw_shortterm == UNLIMITED_RATE)
		bbr->bw_shortterm = max_bw(bbr);
	if (bbr->inflight_shortterm == UNLIMITED)
		bbr->inflight_shortterm = tcp_snd_cwnd(tcp_sk(sk));
	bbr->bw_shortterm = max(bbr->bw_latest, percent_of(bbr->bw_shortterm, BETA_PERCENT));
	bbr->inflight_shortterm =
		max_t(u32, bbr->inflight_latest, percent_of(bbr->inflight_shortterm, BETA_PERCENT));
}

static void update_congestion_signals(struct sock *sk, const struct sample *rs)
{
	struct bbr3 *bbr = of(sk);

	update_round(sk, rs);
	if (rs->rate && (rs->rate >= max_bw(bbr) || !rs->is_app_limited))
		bbr->max_bw_slots[1] = max(bbr->max_bw_slots[1], rs->rate);
	if (!bbr->loss_round_start)
		return;
	adapt_lower_bounds(sk);
	bbr->is_loss_in_round = false;
}

static void update_ack_aggregation(struct sock *sk, const struct sample *rs)
{
	struct bbr3 *bbr = of(sk);
	u64 interval_us = min_t(u64, now_us(sk) - bbr->extra_acked_start_us, MIN_RTT_FILTER_US);
	u64 expected = div_u64(bbr->bw * interval_us, USEC_PER_SEC) >> RATE_SHIFT;
	u32 extra;

	if (bbr->extra_acked_delivered <= expected) {
		bbr->extra_acked_delivered = 0;
		bbr->extra_acked_start_us = now_us(sk);
		expected = 0;
	}
	bbr->extra_acked_delivered += rs->newly_acked;
	extra = min_t(u64, bbr->extra_acked_delivered - expected, tcp_snd_cwnd(tcp_sk(sk)));
	minmax_running_max(&bbr->extra_acked, bbr->full_bw_reached ? EXTRA_ACKED_FILTER_ROUNDS : 1,
			   bbr->round_count, extra);
}

static void check_full_bw_reached(struct bbr3 *bbr, const struct sample *rs)
{
	if (bbr->full_bw_now || !bbr->round_start || rs->is_app_limited)
		return;
	if (rs->rate >= percent_of(bbr->full_bw, FULL_BW_GROWTH_PERCENT)) {
		reset_full_bw(bbr, rs->rate);
		return;
	}
	bbr->full_bw_now = ++bbr->full_bw_count >= FULL_BW_ROUNDS;
	bbr->full_bw_reached |= bbr->full_bw_now;
}

static void check_startup_high_loss(struct sock *sk, const struct sample *rs)
{
	struct bbr3 *bbr = of(sk);
	u32 ranges = bbr->loss_ranges;

	if (!bbr->loss_round_start)
		return;
	bbr->loss_ranges = 0;
	if (bbr->state != STARTUP || inet_csk(sk)->icsk_ca_state != TCP_CA_Recovery ||
	    (tcp_is_sack(tcp_sk(sk)) &&
	     (bbr->round_count <= bbr->recovery_round || ranges < STARTUP_FULL_LOSS_RANGES)) ||
	    !is_inflight_too_high(sk, rs))
		return;
	bbr->undo_state = STARTUP;
	bbr->full_bw_reached = true;
	bbr->inflight_longterm = max(bdp_multiple(bbr, bbr->bw, 100), bbr->inflight_latest);
}

#endif
