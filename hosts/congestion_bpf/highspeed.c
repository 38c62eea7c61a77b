// SPDX-License-Identifier: GPL-2.0 OR MIT
/* HighSpeed TCP (RFC 3649) as Linux implements it: the increase a(w) and the decrease b(w) follow from the window w. As
 * in Linux an ACK adds a(w)/w, however many segments it acknowledges. The RFC adds a(w)/w per acknowledged segment.
 */
#include "congestion.h"

/* RFC 3649, appendix B. Up to the window of row i, a(w) is i + 1 packets per RTT. `decrease` is 256 b(w), rounded
 * down.
 */
static const struct {
	u32 window, decrease;
} rows[] = {
	{38, 128},   {118, 112},  {221, 104},  {347, 98},   {495, 93},	 {663, 89},   {851, 86},
	{1058, 83},  {1284, 81},  {1529, 78},  {1793, 76},  {2076, 74},	 {2378, 72},  {2699, 71},
	{3039, 69},  {3399, 68},  {3778, 66},  {4177, 65},  {4596, 64},	 {5036, 62},  {5497, 61},
	{5979, 60},  {6483, 59},  {7009, 58},  {7558, 57},  {8130, 56},	 {8726, 55},  {9346, 54},
	{9991, 53},  {10661, 52}, {11358, 52}, {12082, 51}, {12834, 50}, {13614, 49}, {14424, 48},
	{15265, 48}, {16137, 47}, {17042, 46}, {17981, 45}, {18955, 45}, {19965, 44}, {21013, 43},
	{22101, 43}, {23230, 42}, {24402, 41}, {25618, 41}, {26881, 40}, {28193, 39}, {29557, 39},
	{30975, 38}, {32450, 38}, {33986, 37}, {35586, 36}, {37253, 36}, {38992, 35}, {40808, 35},
	{42707, 34}, {44694, 33}, {46776, 33}, {48961, 32}, {51258, 32}, {53677, 31}, {56230, 30},
	{58932, 30}, {61799, 29}, {64851, 28}, {68113, 28}, {71617, 27}, {75401, 26}, {79517, 26},
	{84035, 25}, {89053, 24},
};

#define LAST_ROW ((u32)ARRAY_SIZE(rows) - 1)

struct highspeed_flow {
	u32 row;
};

CALLBACK(void, begin, struct sock *sk)
{
	struct highspeed_flow *flow = inet_csk_ca(sk);

	flow->row = 0;
}

static u32 row_of(u32 window)
{
	u32 row;

	for (row = 0; row < LAST_ROW; row++)
		if (window <= rows[row].window)
			break;
	return row;
}

CALLBACK(void, cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct highspeed_flow *flow = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 window = tcp_snd_cwnd(tp);

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp)) {
		tcp_slow_start(tp, acked);
		return;
	}
	flow->row = row_of(window);
	if (window >= tp->snd_cwnd_clamp)
		return;
	tp->snd_cwnd_cnt += flow->row + 1;
	if (tp->snd_cwnd_cnt >= window) {
		tp->snd_cwnd_cnt -= window;
		tcp_snd_cwnd_set(tp, window + 1);
	}
}

/* Only ACKs in congestion avoidance update the row, so a loss in slow start uses an older row. */
CALLBACK(u32, ssthresh, struct sock *sk)
{
	struct highspeed_flow *flow = inet_csk_ca(sk);
	u32 window = tcp_snd_cwnd(tcp_sk(sk));
	u32 row = min(flow->row, LAST_ROW);

	return max(window - (u32)(((u64)window * rows[row].decrease) >> 8), 2U);
}

CALLBACK(u32, undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

CONGESTION_CONTROL(struct highspeed_flow, .init = begin, .ssthresh = ssthresh, .cong_avoid = cong_avoid,
		   .undo_cwnd = undo_cwnd);

MODULE_DESCRIPTION("HighSpeed TCP");
MODULE_LICENSE("Dual MIT/GPL");
