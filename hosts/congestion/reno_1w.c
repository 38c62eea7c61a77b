// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Reno that reacts to a loss only with probability 1/w, w the window at the loss (Spang, Arslan, McKeown 2021,
 * section 4.5). So few flows reduce their windows in the same RTT, and square root of n buffers suffice by a Chernoff
 * bound instead of an assumption.
 *
 * One draw per loss event, as Reno reduces once per loss event: the kernel asks for ssthresh when fast recovery, a
 * reaction to ECN, or a timeout begins. A flow that does not react keeps its window through the recovery; lost segments
 * are repaired as ever. In slow start every loss halves, because w there says nothing of a fair share: otherwise the
 * window that overshot the path would stay for w loss events.
 *
 * For BPF struct_ops the two callbacks can stay as they are, except for the draw (bpf_get_prandom_u32) and the module's
 * init function (a map of type struct_ops); tcp_reno_cong_avoid and tcp_reno_undo_cwnd are kfuncs there.
 */
#include <linux/module.h>
#include <linux/random.h>
#include <net/tcp.h>

/* The flow's own generator: what a flow draws does not depend on what other flows draw. */
struct reno_1w {
	u64 state;
};

/* The kernel's random numbers follow from the machine's seed (virtual/kernel/patches/seeded-random.patch). */
static void begin(struct sock *sk)
{
	struct reno_1w *flow = inet_csk_ca(sk);

	get_random_bytes(&flow->state, sizeof(flow->state));
}

/* splitmix64, its upper half. */
static u32 draw(struct reno_1w *flow)
{
	u64 z = flow->state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (z ^ (z >> 31)) >> 32;
}

static u32 ssthresh(struct sock *sk)
{
	u32 window = tcp_snd_cwnd(tcp_sk(sk));

	if (tcp_in_slow_start(tcp_sk(sk)) || reciprocal_scale(draw(inet_csk_ca(sk)), window) == 0)
		return tcp_reno_ssthresh(sk);
	return max(window, 2U);
}

static struct tcp_congestion_ops algorithm __read_mostly = {
	.name = "reno_1w",
	.owner = THIS_MODULE,
	.init = begin,
	.ssthresh = ssthresh,
	.cong_avoid = tcp_reno_cong_avoid,
	.undo_cwnd = tcp_reno_undo_cwnd,
};

static int __init start(void)
{
	BUILD_BUG_ON(sizeof(struct reno_1w) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&algorithm);
}

static void __exit stop(void)
{
	tcp_unregister_congestion_control(&algorithm);
}

module_init(start);
module_exit(stop);

MODULE_DESCRIPTION("Reno with a reduction probability of 1/w");
MODULE_LICENSE("Dual MIT/GPL");
