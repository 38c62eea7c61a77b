/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The cycle of ProbeBW: down, cruise, refill, up. */
#ifndef BBR3_PROBE_BW_H
#define BBR3_PROBE_BW_H

#include "model.h"

static bool probes_if_it_is_time(struct sock *sk)
{
	struct bbr3 *bbr = of(sk);
	u32 reno_rounds = min_t(u32, target_inflight(sk), RENO_ROUNDS);

	if (now_us(sk) <= bbr->cycle_stamp_us + bbr->bw_probe_wait_us &&
	    bbr->rounds_since_probe_up < reno_rounds)
		return false;
	start_refill(sk);
	return true;
}

static bool is_time_to_cruise(const struct sock *sk)
{
	u32 in_flight = tcp_packets_in_flight(tcp_sk(sk));

	return in_flight <= inflight_with_headroom(of(sk)) && in_flight <= inflight(sk, max_bw(of(sk)), 100);
}

static bool is_bound_by_longterm(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tp->is_cwnd_limited && tcp_snd_cwnd(tp) >= of(sk)->inflight_longterm;
}

static bool is_time_to_go_down(struct sock *sk, const struct sample *rs)
{
	struct bbr3 *bbr = of(sk);

	if (bbr->prev_probe_too_high && tcp_packets_in_flight(tcp_sk(sk)) >= bbr->inflight_longterm) {
		bbr->prev_probe_precautionary = true;
		return true;
	}
	if (!is_bound_by_longterm(sk))
		return bbr->full_bw_now;
	reset_full_bw(bbr, rs->rate); /* the bound hides the path's capacity */
	return false;
}

static void probe_inflight_longterm_upward(struct sock *sk, const struct sample *rs)
{
	struct bbr3 *bbr = of(sk);
	u32 increments;

	if (!is_bound_by_longterm(sk))
		return;
	bbr->bw_probe_up_acked += rs->newly_acked;
	increments = bbr->bw_probe_up_acked / bbr->probe_up_acked_per_inc;
	bbr->bw_probe_up_acked -= increments * bbr->probe_up_acked_per_inc;
	bbr->inflight_longterm += increments;
	if (bbr->round_start)
		raise_inflight_longterm_slope(sk);
}

/* Returns whether it has changed the state. */
static bool adapt_long_term_model(struct sock *sk, const struct sample *rs)
{
	struct bbr3 *bbr = of(sk);

	if (bbr->ack_phase == ACKS_PROBE_STARTING && bbr->round_start)
		bbr->ack_phase = ACKS_PROBE_FEEDBACK;
	if (bbr->ack_phase == ACKS_PROBE_STOPPING && bbr->round_start) {
		bbr->is_bw_probe_sample = false;
		bbr->ack_phase = ACKS_INIT;
		if (is_probing_bw_state(bbr) && !rs->is_app_limited)
			advance_max_bw_filter(bbr);
		if (is_probing_bw_state(bbr) && bbr->prev_probe_precautionary && !bbr->prev_probe_too_high) {
			start_refill(sk);
			return true;
		}
	}
	if (is_inflight_too_high(sk, rs) || bbr->inflight_longterm == UNLIMITED)
		return false;
	bbr->inflight_longterm = max(bbr->inflight_longterm, rs->tx_in_flight);
	if (bbr->state == PROBE_BW_UP)
		probe_inflight_longterm_upward(sk, rs);
	return false;
}

static void update_probe_bw_cycle_phase(struct sock *sk, const struct sample *rs)
{
	struct bbr3 *bbr = of(sk);

	if (!bbr->full_bw_reached || adapt_long_term_model(sk, rs))
		return;
	switch (bbr->state) {
	case PROBE_BW_DOWN:
		if (!probes_if_it_is_time(sk) && is_time_to_cruise(sk))
			bbr->state = PROBE_BW_CRUISE;
		break;
	case PROBE_BW_CRUISE:
		probes_if_it_is_time(sk);
		break;
	case PROBE_BW_REFILL:
		if (bbr->round_start) {
			bbr->is_bw_probe_sample = true;
			start_up(sk, rs);
		}
		break;
	case PROBE_BW_UP:
		if (is_time_to_go_down(sk, rs)) {
			bbr->prev_probe_too_high = false;
			start_down(sk);
		}
		break;
	}
}

#endif
