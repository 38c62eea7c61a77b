// SPDX-License-Identifier: GPL-2.0 OR MIT
/* DCTCP (RFC 8257) as Linux implements it. The sender estimates alpha, the share of marked packets, once per window,
 * and at a mark reduces its window by the fraction alpha/2. The receiver echoes each change of the marks at once.
 *
 * Linux's PLB, which is off by default, and the diagnostics of ss are not implemented. A flow without negotiated ECN
 * falls back to Reno, but differently from Linux: see begin().
 */
#include "congestion.h"

#define ALPHA_BITS 10
#define MOST_ALPHA (1U << ALPHA_BITS)
#define GAIN_SHIFT 4 /* g = 1/16 */

struct dctcp_flow {
	u32 alpha;			 /* in units of 1/MOST_ALPHA */
	u32 window_end;			 /* sequence number at which this observation window ends */
	u32 delivered, delivered_marked; /* at the window's start */
	u32 window_at_loss;
	u32 acknowledgeable; /* rcv_nxt at the last data packet */
	u32 marked;	     /* whether the last data packet was marked */
	u32 as_reno;
};

static void observe(const struct tcp_sock *tp, struct dctcp_flow *flow)
{
	flow->window_end = tp->snd_nxt;
	flow->delivered = tp->delivered;
	flow->delivered_marked = tp->delivered_ce;
}

/* Without ECN the flow behaves as Reno under this algorithm's name, and its packets are still sent as ECN-capable
 * (ECT). Linux instead replaces the algorithm and clears ECT.
 */
CALLBACK(void, begin, struct sock *sk)
{
	struct dctcp_flow *flow = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	flow->as_reno = !(tp->ecn_flags & TCP_ECN_OK) && sk->__sk_common.skc_state != TCP_LISTEN &&
			sk->__sk_common.skc_state != TCP_CLOSE;
	flow->acknowledgeable = tp->rcv_nxt;
	flow->alpha = MOST_ALPHA;
	flow->window_at_loss = 0;
	flow->marked = 0;
	observe(tp, flow);
}

CALLBACK(u32, ssthresh, struct sock *sk)
{
	struct dctcp_flow *flow = inet_csk_ca(sk);
	u32 window = tcp_snd_cwnd(tcp_sk(sk));

	flow->window_at_loss = window;
	if (flow->as_reno)
		return tcp_reno_ssthresh(sk);
	return max(window - ((window * flow->alpha) >> (ALPHA_BITS + 1)), 2U);
}

/* alpha = (1 - g) alpha + g F, at the end of each observation window. F is the window's share of marked packets. */
CALLBACK(void, in_ack_event, struct sock *sk, u32 flags)
{
	struct dctcp_flow *flow = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 delivered, marked, alpha;

	if (before(tp->snd_una, flow->window_end))
		return;
	delivered = tp->delivered - flow->delivered;
	marked = tp->delivered_ce - flow->delivered_marked;
	alpha = flow->alpha;
	alpha -= min_not_zero(alpha, alpha >> GAIN_SHIFT);
	if (marked) {
		marked = (marked << (ALPHA_BITS - GAIN_SHIFT)) / max(1U, delivered);
		alpha = min(alpha + marked, MOST_ALPHA);
	}
	flow->alpha = alpha;
	observe(tp, flow);
}

static void halve(struct sock *sk)
{
	struct dctcp_flow *flow = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 window = tcp_snd_cwnd(tp);

	flow->window_at_loss = window;
	tp->snd_ssthresh = max(window >> 1, 2U);
}

/* A loss halves the window, whatever alpha is. The kernel has just called ssthresh(), which used alpha: overwrite the
 * result.
 */
CALLBACK(void, set_state, struct sock *sk, u8 state)
{
	struct dctcp_flow *flow = inet_csk_ca(sk);

	if (state == TCP_CA_Recovery && inet_csk(sk)->icsk_ca_state != TCP_CA_Recovery && !flow->as_reno)
		halve(sk);
}

static void echo(struct sock *sk, u32 marked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (marked)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

/* RFC 8257, section 3.2: when the mark changes, a delayed ACK leaves with the old mark, and the next with the new one. */
static void receive(struct sock *sk, u32 marked)
{
	struct dctcp_flow *flow = inet_csk_ca(sk);

	if (flow->marked != marked) {
		if (inet_csk(sk)->icsk_ack.pending & ICSK_ACK_TIMER) {
			echo(sk, flow->marked);
			send_ack(sk, flow->acknowledgeable);
		}
		inet_csk(sk)->icsk_ack.pending |= ICSK_ACK_NOW;
	}
	flow->acknowledgeable = tcp_sk(sk)->rcv_nxt;
	flow->marked = marked;
	echo(sk, marked);
}

CALLBACK(void, cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct dctcp_flow *flow = inet_csk_ca(sk);

	if (flow->as_reno)
		return;
	if (event == CA_EVENT_ECN_IS_CE || event == CA_EVENT_ECN_NO_CE)
		receive(sk, event == CA_EVENT_ECN_IS_CE);
	else if (event == CA_EVENT_LOSS)
		halve(sk);
}

CALLBACK(void, cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

CALLBACK(u32, undo_cwnd, struct sock *sk)
{
	struct dctcp_flow *flow = inet_csk_ca(sk);

	return flow->as_reno ? tcp_reno_undo_cwnd(sk) : max(tcp_snd_cwnd(tcp_sk(sk)), flow->window_at_loss);
}

CONGESTION_CONTROL(struct dctcp_flow, .init = begin, .ssthresh = ssthresh, .in_ack_event = in_ack_event,
		   .set_state = set_state, .cwnd_event = cwnd_event, .cong_avoid = cong_avoid,
		   .undo_cwnd = undo_cwnd, .flags = TCP_CONG_NEEDS_ECN);

MODULE_DESCRIPTION("DCTCP");
MODULE_LICENSE("Dual MIT/GPL");
