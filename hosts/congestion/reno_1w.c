// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Reno that reacts to a loss only with probability 1/w, where w is the window at the loss (Spang, Arslan, McKeown 2021,
 * section 4.5). Few flows then reduce their windows in the same RTT. A Chernoff bound, instead of an assumption, shows
 * that a buffer of BDP/sqrt(n) suffices for n flows.
 *
 * A flow draws once per loss event, because Reno reduces its window once per loss event: the kernel asks for ssthresh
 * when fast recovery, a reaction to ECN, or a timeout begins. A flow that does not react keeps its window through the
 * recovery; lost segments are retransmitted as usual. In slow start every loss halves the window: w is then no estimate
 * of the fair share, and a window that overshot the path would otherwise stay for about w loss events.
 */
#include "congestion.h"

/* Each flow has a generator of its own, so its draws do not depend on the draws of other flows. */
struct reno_1w_flow {
	u64 state;
};

CALLBACK(void, begin, struct sock *sk)
{
	struct reno_1w_flow *flow = inet_csk_ca(sk);

	flow->state = random_u64();
}

/* The upper half of a splitmix64 draw. */
static u32 draw(struct reno_1w_flow *flow)
{
	u64 z = flow->state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (z ^ (z >> 31)) >> 32;
}

CALLBACK(u32, ssthresh, struct sock *sk)
{
	u32 window = tcp_snd_cwnd(tcp_sk(sk));

	if (tcp_in_slow_start(tcp_sk(sk)) || reciprocal_scale(draw(inet_csk_ca(sk)), window) == 0)
		return tcp_reno_ssthresh(sk);
	return max(window, 2U);
}

/* A BPF struct_ops cannot point to a kernel function, so these two wrappers call the kernel's functions. */
CALLBACK(void, cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

CALLBACK(u32, undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

CONGESTION_CONTROL(struct reno_1w_flow, .init = begin, .ssthresh = ssthresh, .cong_avoid = cong_avoid,
		   .undo_cwnd = undo_cwnd);

MODULE_DESCRIPTION("Reno with a reduction probability of 1/w");
MODULE_LICENSE("Dual MIT/GPL");
