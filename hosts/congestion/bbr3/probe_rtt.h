/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The filter of the least RTT, and ProbeRTT. */
#ifndef BBR3_PROBE_RTT_H
#define BBR3_PROBE_RTT_H

#include "states.h"

static void update_min_rtt(struct sock *sk, const struct sample *rs)
{
	struct bbr3 *bbr = of(sk);

	bbr->probe_rtt_expired = now_us(sk) > bbr->probe_rtt_min_stamp_us + PROBE_RTT_INTERVAL_US;
	if (rs->rtt_us >= 0 && (rs->rtt_us < bbr->probe_rtt_min_us || bbr->probe_rtt_expired)) {
		bbr->probe_rtt_min_us = rs->rtt_us;
		bbr->probe_rtt_min_stamp_us = now_us(sk);
	}
	if (bbr->probe_rtt_min_us < bbr->min_rtt_us ||
	    now_us(sk) > bbr->min_rtt_stamp_us + MIN_RTT_FILTER_US) {
		bbr->min_rtt_us = bbr->probe_rtt_min_us;
		bbr->min_rtt_stamp_us = bbr->probe_rtt_min_stamp_us;
	}
}

static void check_probe_rtt_done(struct sock *sk)
{
	struct bbr3 *bbr = of(sk);

	if (!bbr->probe_rtt_done_us || now_us(sk) <= bbr->probe_rtt_done_us)
		return;
	bbr->probe_rtt_min_stamp_us = now_us(sk);
	restore_cwnd(sk);
	reset_short_term_model(bbr);
	bbr->state = STARTUP;
	if (bbr->full_bw_reached) {
		start_down(sk);
		bbr->state = PROBE_BW_CRUISE;
	}
}

static void handle_probe_rtt(struct sock *sk)
{
	struct bbr3 *bbr = of(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	tp->app_limited = tp->delivered + tcp_packets_in_flight(tp) ?: 1; /* ignore the low rates */
	if (!bbr->probe_rtt_done_us) {
		if (tcp_packets_in_flight(tp) > probe_rtt_cwnd(bbr))
			return;
		bbr->probe_rtt_done_us = now_us(sk) + PROBE_RTT_DURATION_US;
		bbr->probe_rtt_round_done = false;
		start_round(sk);
		return;
	}
	bbr->probe_rtt_round_done |= bbr->round_start;
	if (bbr->probe_rtt_round_done)
		check_probe_rtt_done(sk);
}

static void check_probe_rtt(struct sock *sk, const struct sample *rs)
{
	struct bbr3 *bbr = of(sk);

	if (bbr->state != PROBE_RTT && bbr->probe_rtt_expired && !bbr->idle_restart) {
		bbr->state = PROBE_RTT;
		save_cwnd(sk);
		bbr->probe_rtt_done_us = 0;
		bbr->ack_phase = ACKS_PROBE_STOPPING;
		start_round(sk);
	}
	if (bbr->state == PROBE_RTT)
		handle_probe_rtt(sk);
	if (rs->delivered)
		bbr->idle_restart = false;
}

#endif
