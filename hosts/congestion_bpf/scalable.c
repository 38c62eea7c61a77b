// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Scalable TCP (T. Kelly 2003) as Linux implements it: one packet more per 100 acknowledged packets, an eighth less at
 * a loss. Kelly's paper adds 0.01 packets per ACK. At windows below 100 packets the growth is Reno's.
 */
#include "congestion.h"

#define MOST_PACKETS_PER_STEP 100U
#define DECREASE_SHIFT	      3

struct scalable_flow {};

CALLBACK(void, cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp))
		acked = tcp_slow_start(tp, acked);
	if (acked) /* segments of the ACK beyond the end of slow start */
		tcp_cong_avoid_ai(tp, min(tcp_snd_cwnd(tp), MOST_PACKETS_PER_STEP), acked);
}

CALLBACK(u32, ssthresh, struct sock *sk)
{
	u32 window = tcp_snd_cwnd(tcp_sk(sk));

	return max(window - (window >> DECREASE_SHIFT), 2U);
}

CALLBACK(u32, undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

CONGESTION_CONTROL(struct scalable_flow, .ssthresh = ssthresh, .cong_avoid = cong_avoid,
		   .undo_cwnd = undo_cwnd);

MODULE_DESCRIPTION("Scalable TCP");
MODULE_LICENSE("Dual MIT/GPL");
