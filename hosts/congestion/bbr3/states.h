/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The states: variables that are reset on entry to a state, and variables to restore after a spurious recovery. */
#ifndef BBR3_STATES_H
#define BBR3_STATES_H

#include <linux/random.h>
#include "volumes.h"

static void start_round(struct sock *sk)
{
	of(sk)->next_round_delivered = tcp_sk(sk)->delivered;
}

static void reset_full_bw(struct bbr3 *bbr, u64 baseline)
{
	bbr->full_bw = baseline;
	bbr->full_bw_count = 0;
	bbr->full_bw_now = false;
}

static void reset_congestion_signals(struct bbr3 *bbr)
{
	bbr->is_loss_in_round = false;
	bbr->loss_ranges = 0;
	bbr->bw_latest = 0;
	bbr->inflight_latest = 0;
}

static void reset_short_term_model(struct bbr3 *bbr)
{
	bbr->bw_shortterm = UNLIMITED_RATE;
	bbr->inflight_shortterm = UNLIMITED;
}

static void save_cwnd(struct sock *sk)
{
	struct bbr3 *bbr = of(sk);
	u32 cwnd = tcp_snd_cwnd(tcp_sk(sk));
	bool is_unmodulated = inet_csk(sk)->icsk_ca_state < TCP_CA_Recovery && bbr->state != PROBE_RTT;

	bbr->prior_cwnd = is_unmodulated ? cwnd : max(bbr->prior_cwnd, cwnd);
}

static void restore_cwnd(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tcp_snd_cwnd_set(tp, max(tcp_snd_cwnd(tp), of(sk)->prior_cwnd));
}

static void save_state_upon_loss(struct sock *sk)
{
	struct bbr3 *bbr = of(sk);

	save_cwnd(sk);
	bbr->undo_state = NO_STATE;
	bbr->undo_bw_shortterm = bbr->bw_shortterm;
	bbr->undo_inflight_shortterm = bbr->inflight_shortterm;
	bbr->undo_inflight_longterm = bbr->inflight_longterm;
}

static void enter_drain(struct sock *sk)
{
	struct bbr3 *bbr = of(sk);

	bbr->state = DRAIN;
	bbr->drain_start_round = bbr->round_count;
	/* BBR does not use ssthresh: the value shows the end of slow start to readers of TCP's state. */
	tcp_sk(sk)->snd_ssthresh = inflight(sk, bbr->max_bw_slots[1], 100);
}

static void start_down(struct sock *sk)
{
	struct bbr3 *bbr = of(sk);

	reset_congestion_signals(bbr);
	bbr->probe_up_acked_per_inc = UNLIMITED;
	bbr->rounds_since_probe_up = reciprocal_scale(get_random_u32(), 2);
	bbr->bw_probe_wait_us = PROBE_WAIT_US + reciprocal_scale(get_random_u32(), USEC_PER_SEC);
	bbr->cycle_stamp_us = now_us(sk);
	bbr->ack_phase = ACKS_PROBE_STOPPING;
	start_round(sk);
	bbr->state = PROBE_BW_DOWN;
}

static void start_refill(struct sock *sk)
{
	struct bbr3 *bbr = of(sk);

	reset_short_term_model(bbr);
	bbr->bw_probe_up_rounds = 0;
	bbr->bw_probe_up_acked = 0;
	bbr->prev_probe_precautionary = false;
	bbr->ack_phase = ACKS_REFILLING;
	start_round(sk);
	bbr->state = PROBE_BW_REFILL;
}

static void raise_inflight_longterm_slope(struct sock *sk)
{
	struct bbr3 *bbr = of(sk);
	u32 growth_this_round = 1U << bbr->bw_probe_up_rounds;

	bbr->bw_probe_up_rounds = min(bbr->bw_probe_up_rounds + 1, 30U);
	bbr->probe_up_acked_per_inc = max(tcp_snd_cwnd(tcp_sk(sk)) / growth_this_round, 1U);
}

static void start_up(struct sock *sk, const struct sample *rs)
{
	struct bbr3 *bbr = of(sk);

	bbr->ack_phase = ACKS_PROBE_STARTING;
	start_round(sk);
	reset_full_bw(bbr, rs->rate);
	bbr->state = PROBE_BW_UP;
	raise_inflight_longterm_slope(sk);
}

#endif
