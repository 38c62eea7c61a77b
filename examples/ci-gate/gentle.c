// SPDX-License-Identifier: MIT
/* A congestion control under test: Reno that keeps 70 % of its window at a loss, as Cubic does. */
#include "congestion.h"

struct gentle_flow {
	u32 losses;
};

CALLBACK(u32, ssthresh, struct sock *sk)
{
	return max(tcp_snd_cwnd(tcp_sk(sk)) * 70 / 100, 2U);
}

CALLBACK(void, cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

CALLBACK(u32, undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

CONGESTION_CONTROL(struct gentle_flow, .ssthresh = ssthresh, .cong_avoid = cong_avoid,
		   .undo_cwnd = undo_cwnd);

MODULE_DESCRIPTION("A gentle Reno");
MODULE_LICENSE("Dual MIT/GPL");
