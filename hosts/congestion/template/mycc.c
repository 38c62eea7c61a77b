// SPDX-License-Identifier: GPL-2.0 OR MIT
/* A template for a congestion control: Reno, which keeps `kept_percent` of its window at a loss instead of half.
 * docs/your-congestion-control.md goes from here to a figure. Copy the file first: the file's name is the algorithm's
 * name.
 */
#include "congestion.h"

static unsigned int kept_percent = 75; /* CC_PARAMETERS=mycc.kept_percent=90, in virtual time */
module_param(kept_percent, uint, 0444);

/* The state of each flow, at most 104 bytes, all 0 at first. inet_csk_ca(sk) points to it. */
struct mycc_flow {
	u32 losses;
};

/* The window to have after a loss, a mark or a timeout. The kernel asks once for each of these events. */
CALLBACK(u32, ssthresh, struct sock *sk)
{
	struct mycc_flow *flow = inet_csk_ca(sk);
	u32 window = tcp_snd_cwnd(tcp_sk(sk));

	flow->losses++;
	return max(window * kept_percent / 100, 2U);
}

/* An ACK came for `acked` packets: let the window grow. This is slow start, then one packet per window. */
CALLBACK(void, cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp))
		acked = tcp_slow_start(tp, acked);
	if (acked)
		tcp_cong_avoid_ai(tp, tcp_snd_cwnd(tp), acked);
}

/* The window to return to when a loss turns out to be spurious. */
CALLBACK(u32, undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

CONGESTION_CONTROL(struct mycc_flow, .ssthresh = ssthresh, .cong_avoid = cong_avoid, .undo_cwnd = undo_cwnd);

MODULE_DESCRIPTION("A template");
MODULE_LICENSE("Dual MIT/GPL");
