// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Scalable TCP with the increase that Linux had until 5.6: a packet for every 50 ACKs, however many segments an ACK
 * covers. Since 5.7 (March 2020, "tcp: fix stretch ACK bugs in Scalable") Linux adds a packet for every 100 segments.
 * The two increases agree if each ACK covers two segments. With GRO an ACK covers more segments, and the older increase
 * is slower. Spang et al. 2021 measured the older increase, because their hosts had Linux 5.5.
 *
 * The reduction is Linux's own, to 7/8 rounded up, and never below 2 packets.
 */
#include "congestion.h"

#define ACKS_PER_PACKET 50U
#define REDUCTION_SHIFT 3 /* an eighth */

struct scalable_50_flow {};

CALLBACK(u32, ssthresh, struct sock *sk)
{
	u32 window = tcp_snd_cwnd(tcp_sk(sk));

	return max(window - (window >> REDUCTION_SHIFT), 2U);
}

CALLBACK(void, cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp))
		tcp_slow_start(tp, acked);
	else
		tcp_cong_avoid_ai(tp, min(tcp_snd_cwnd(tp), ACKS_PER_PACKET), 1);
}

CALLBACK(u32, undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

CONGESTION_CONTROL(struct scalable_50_flow, .ssthresh = ssthresh, .cong_avoid = cong_avoid,
		   .undo_cwnd = undo_cwnd);

MODULE_DESCRIPTION("Scalable TCP with the increase per ACK of Linux before 5.7");
MODULE_LICENSE("Dual MIT/GPL");
