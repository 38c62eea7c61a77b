/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Pacing rate and window, from the model. */
#ifndef BBR3_CONTROL_H
#define BBR3_CONTROL_H

#include "volumes.h"

static u64 pacing_bytes_per_s(const struct sock *sk, u64 bw, u32 gain_percent)
{
	u64 packets_per_s_q16 = percent_of(percent_of(bw, gain_percent), 100 - PACING_MARGIN_PERCENT);

	return packets_per_s_q16 * tcp_sk(sk)->mss_cache >> RATE_SHIFT;
}

static void set_rate(struct sock *sk, u64 bytes_per_s)
{
	WRITE_ONCE(sk->sk_pacing_rate, min_t(u64, bytes_per_s, READ_ONCE(sk->sk_max_pacing_rate)));
}

static void init_pacing_rate(struct sock *sk)
{
	struct bbr3 *bbr = of(sk);
	u32 srtt_us = tcp_sk(sk)->srtt_us >> 3;
	u64 bw = div_u64((u64)bbr->initial_cwnd * USEC_PER_SEC << RATE_SHIFT, srtt_us ?: USEC_PER_MSEC);

	bbr->has_srtt = srtt_us;
	set_rate(sk, pacing_bytes_per_s(sk, bw, GAINS[STARTUP].pacing_percent));
}

static void set_pacing_rate(struct sock *sk, u32 gain_percent)
{
	u64 rate = pacing_bytes_per_s(sk, of(sk)->bw, gain_percent);

	if (!of(sk)->has_srtt && tcp_sk(sk)->srtt_us)
		init_pacing_rate(sk);
	if (of(sk)->full_bw_reached || rate > READ_ONCE(sk->sk_pacing_rate))
		set_rate(sk, rate);
}

static void set_cwnd(struct sock *sk, const struct sample *rs)
{
	struct bbr3 *bbr = of(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = tcp_snd_cwnd(tp), cap = UNLIMITED;
	u32 most = quantization_budget(sk, bdp_multiple(bbr, bbr->bw, GAINS[bbr->state].cwnd_percent) +
						   minmax_get(&bbr->extra_acked));

	if (bbr->full_bw_reached)
		cwnd = min(cwnd + rs->newly_acked, most);
	else if (cwnd < most || tp->delivered < bbr->initial_cwnd)
		cwnd += rs->newly_acked;
	cwnd = max_t(u32, cwnd, MIN_PIPE_CWND);
	if (bbr->state == PROBE_RTT)
		cwnd = min(cwnd, probe_rtt_cwnd(bbr));
	if (bbr->state == PROBE_RTT || bbr->state == PROBE_BW_CRUISE)
		cap = inflight_with_headroom(bbr);
	else if (is_probing_bw_state(bbr))
		cap = bbr->inflight_longterm;
	cap = max_t(u32, min(cap, bbr->inflight_shortterm), MIN_PIPE_CWND);
	tcp_snd_cwnd_set(tp, min3(cwnd, cap, tp->snd_cwnd_clamp));
}

#endif
