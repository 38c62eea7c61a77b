/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Amounts of packets in flight: the BDP of a rate, the budget for the hosts' offloads, and the bounds of the model. */
#ifndef BBR3_VOLUMES_H
#define BBR3_VOLUMES_H

#include "state.h"

static u32 bdp_multiple(const struct bbr3 *bbr, u64 bw, u32 gain_percent)
{
	u64 bdp; /* times 2^16 */

	if (bbr->min_rtt_us == U32_MAX)
		return bbr->initial_cwnd;
	bdp = div_u64(bw * bbr->min_rtt_us, USEC_PER_SEC);
	return (percent_of(bdp, gain_percent) + (1 << RATE_SHIFT) - 1) >> RATE_SHIFT;
}

static u32 offload_budget(const struct sock *sk)
{
	u64 bytes = div_u64(READ_ONCE(sk->sk_pacing_rate), MSEC_PER_SEC);
	u32 packets = div_u64(min_t(u64, bytes, 65536), tcp_sk(sk)->mss_cache);

	return 3 * min_t(u32, max(packets, 2U), sk->sk_gso_max_segs);
}

static u32 quantization_budget(const struct sock *sk, u32 packets)
{
	packets = max3(packets, offload_budget(sk), (u32)MIN_PIPE_CWND);
	return of(sk)->state == PROBE_BW_UP ? packets + 2 : packets;
}

static u32 inflight(const struct sock *sk, u64 bw, u32 gain_percent)
{
	return quantization_budget(sk, bdp_multiple(of(sk), bw, gain_percent));
}

static u32 inflight_with_headroom(const struct bbr3 *bbr)
{
	u32 longterm = bbr->inflight_longterm;

	if (longterm == UNLIMITED)
		return UNLIMITED;
	return max_t(u32, longterm - max_t(u32, percent_of(longterm, HEADROOM_PERCENT), 1), MIN_PIPE_CWND);
}

static u32 target_inflight(const struct sock *sk)
{
	return min(bdp_multiple(of(sk), of(sk)->bw, 100), tcp_snd_cwnd(tcp_sk(sk)));
}

static u32 probe_rtt_cwnd(const struct bbr3 *bbr)
{
	return max_t(u32, bdp_multiple(bbr, bbr->bw, GAINS[PROBE_RTT].cwnd_percent), MIN_PIPE_CWND);
}

#endif
