// SPDX-License-Identifier: GPL-2.0 OR MIT
/* BBRv3 after draft-ietf-ccwg-bbr (state of August 2026), for kernels without it. Names are the draft's. Windows and
 * volumes are in packets, because the kernel counts packets.
 *
 * What differs from the draft:
 * - P.tx_in_flight and P.lost. Linux keeps P.delivered for each packet, but not the packets in flight and lost at its
 *   transmission. A history of ACKs, indexed by the delivered count, gives both, to the packets between two entries:
 *   those of an ACK, or 1/128 of the packets in flight.
 * - Lost packets. Linux does not call a congestion control for each packet that it marks lost. The packets that an ACK
 *   marks are looked up among those to be retransmitted. Packets that a timer (RACK, RTO) marks count at the next ACK; if
 *   they were sent again by then, the ACK's own sample stands for them.
 * - C.send_quantum is the kernel's own (tcp_tso_autosize); offload_budget assumes the draft's, but no more segments than
 *   the interface takes at once.
 * - An empty slot of the bandwidth filter does not replace the one before it: a cycle without a sample says nothing.
 * - CE marks. The draft asks for a reaction and leaves it open. Here a reaction of TCP (at most one an RTT) counts as a
 *   loss, and as too much in flight if the marked packets were a probe. Google's BBRv3 has another one (alpha as DCTCP).
 * - HandleRestartFromIdle runs when TCP starts to send with nothing in flight (CA_EVENT_TX_START).
 * PLB and the ECN of Google's kernel are not in the draft, and not here.
 *
 * For BPF struct_ops: the walk over the retransmission queue and the memory from kmalloc have no counterpart there.
 */
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <linux/win_minmax.h>
#include <net/tcp.h>

enum state {
	STARTUP,
	DRAIN,
	PROBE_BW_DOWN,
	PROBE_BW_CRUISE,
	PROBE_BW_REFILL,
	PROBE_BW_UP,
	PROBE_RTT,
	NO_STATE,
};

enum ack_phase { ACKS_INIT, ACKS_REFILLING, ACKS_PROBE_STARTING, ACKS_PROBE_FEEDBACK, ACKS_PROBE_STOPPING };

static const struct {
	u16 pacing_percent, cwnd_percent;
} GAINS[] = {
	[STARTUP] = {277, 200},		[DRAIN] = {50, 200},
	[PROBE_BW_DOWN] = {90, 200},	[PROBE_BW_CRUISE] = {100, 200},
	[PROBE_BW_REFILL] = {100, 200}, [PROBE_BW_UP] = {125, 225},
	[PROBE_RTT] = {100, 50},
};

enum {
	LOSS_THRESH_PERCENT = 2,
	BETA_PERCENT = 70,
	HEADROOM_PERCENT = 15,
	PACING_MARGIN_PERCENT = 1,
	MIN_PIPE_CWND = 4,
	FULL_BW_GROWTH_PERCENT = 125,
	FULL_BW_ROUNDS = 3,
	STARTUP_FULL_LOSS_RANGES = 6,
	DRAIN_ROUNDS = 3,
	RENO_ROUNDS = 63,
	EXTRA_ACKED_FILTER_ROUNDS = 10,
	MIN_RTT_FILTER_US = 10 * USEC_PER_SEC,
	PROBE_RTT_INTERVAL_US = 5 * USEC_PER_SEC,
	PROBE_RTT_DURATION_US = 200 * USEC_PER_MSEC,
	PROBE_WAIT_US = 2 * USEC_PER_SEC, /* and up to a second more */
	HISTORY = 256,			  /* entries; half of them cover the packets in flight */
};

#define UNLIMITED      U32_MAX /* packets */
#define UNLIMITED_RATE U64_MAX

/* Rates are in packets a second, times 2^16. */
#define RATE_SHIFT 16

/* Packets that were sent while `delivered` was the delivered count. */
struct transmission {
	u32 delivered, lost, in_flight;
};

struct bbr3 {
	u64 bw, bw_shortterm, bw_latest, max_bw_slots[2]; /* slots: of the cycle before, and of this one */
	u64 full_bw, undo_bw_shortterm;
	u64 cycle_stamp_us, bw_probe_wait_us, extra_acked_start_us;
	u64 min_rtt_stamp_us, probe_rtt_min_stamp_us, probe_rtt_done_us; /* done: 0 while not known */
	u32 min_rtt_us, probe_rtt_min_us;
	u32 round_count, next_round_delivered, loss_round_delivered, drain_start_round, recovery_round;
	u32 inflight_latest, inflight_longterm, inflight_shortterm, undo_inflight_longterm,
		undo_inflight_shortterm;
	u32 probe_up_acked_per_inc, bw_probe_up_acked, bw_probe_up_rounds, rounds_since_probe_up;
	u32 prior_cwnd, initial_cwnd, extra_acked_delivered, loss_ranges, lost;
	struct minmax extra_acked;
	u8 state, undo_state, ack_phase, ca_state, full_bw_count;
	bool round_start, loss_round_start, is_loss_in_round, full_bw_now, full_bw_reached;
	bool is_bw_probe_sample, prev_probe_too_high, prev_probe_precautionary;
	bool probe_rtt_expired, probe_rtt_round_done, idle_restart, has_srtt, has_ce;
	u32 newest, entries, segs_out, in_flight; /* of the history; the last two at the ACK before */
	struct transmission history[HISTORY];
};

struct sample {
	u64 rate; /* 0: this ACK gave none */
	u32 delivered, prior_delivered, newly_acked, newly_lost, tx_in_flight, lost;
	long rtt_us; /* negative: none */
	bool is_app_limited;
};

/* The state is larger than icsk_ca_priv, which holds a pointer to it. */
static struct bbr3 *of(const struct sock *sk)
{
	return *(struct bbr3 **)inet_csk_ca(sk);
}

static u64 now_us(const struct sock *sk)
{
	return tcp_sk(sk)->tcp_mstamp;
}

static u64 percent_of(u64 value, u32 percent)
{
	return div_u64(value * percent, 100);
}

static bool is_probing_bw_state(const struct bbr3 *bbr)
{
	return bbr->state >= PROBE_BW_DOWN && bbr->state <= PROBE_BW_UP;
}

/* ---- Volumes ---- */

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

/* ---- What was in flight and lost when a packet was sent ---- */

static struct transmission *entry(struct bbr3 *bbr, u32 age)
{
	return bbr->history + (bbr->newest - age) % HISTORY;
}

/* The newest entry that is not newer than the packet; the oldest one for older packets. */
static const struct transmission *transmission(struct bbr3 *bbr, u32 delivered)
{
	u32 least = 0, most = bbr->entries - 1;

	while (least < most) {
		u32 age = (least + most) / 2;

		if (after(entry(bbr, age)->delivered, delivered))
			least = age + 1;
		else
			most = age;
	}
	return entry(bbr, least);
}

/* At the begin of an ACK: packets sent since the ACK before belong to the newest entry. */
static void note_transmissions(struct bbr3 *bbr, const struct tcp_sock *tp)
{
	struct transmission *newest = entry(bbr, 0);

	newest->in_flight = max(newest->in_flight, bbr->in_flight + (tp->data_segs_out - bbr->segs_out));
}

/* At the end of an ACK: packets sent from now on belong to a new entry. */
static void note_ack(struct bbr3 *bbr, const struct tcp_sock *tp)
{
	bbr->segs_out = tp->data_segs_out;
	bbr->in_flight = tcp_packets_in_flight(tp);
	if (tp->delivered - entry(bbr, 0)->delivered < max(bbr->in_flight / (HISTORY / 2), 1U))
		return;
	bbr->newest = (bbr->newest + 1) % HISTORY;
	bbr->entries = min_t(u32, bbr->entries + 1, HISTORY);
	*entry(bbr, 0) = (struct transmission){tp->delivered, tp->lost, bbr->in_flight};
}

/* ---- Model: state that begins anew ---- */

static void start_round(struct sock *sk)
{
	of(sk)->next_round_delivered = tcp_sk(sk)->delivered;
}

static void reset_full_bw(struct bbr3 *bbr, u64 baseline)
{
	bbr->full_bw = baseline;
	bbr->full_bw_count = 0;
	bbr->full_bw_now = false;
}

static void reset_congestion_signals(struct bbr3 *bbr)
{
	bbr->is_loss_in_round = false;
	bbr->loss_ranges = 0;
	bbr->bw_latest = 0;
	bbr->inflight_latest = 0;
}

static void reset_short_term_model(struct bbr3 *bbr)
{
	bbr->bw_shortterm = UNLIMITED_RATE;
	bbr->inflight_shortterm = UNLIMITED;
}

static void save_cwnd(struct sock *sk)
{
	struct bbr3 *bbr = of(sk);
	u32 cwnd = tcp_snd_cwnd(tcp_sk(sk));
	bool is_unmodulated = inet_csk(sk)->icsk_ca_state < TCP_CA_Recovery && bbr->state != PROBE_RTT;

	bbr->prior_cwnd = is_unmodulated ? cwnd : max(bbr->prior_cwnd, cwnd);
}

static void restore_cwnd(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tcp_snd_cwnd_set(tp, max(tcp_snd_cwnd(tp), of(sk)->prior_cwnd));
}

static void save_state_upon_loss(struct sock *sk)
{
	struct bbr3 *bbr = of(sk);

	save_cwnd(sk);
	bbr->undo_state = NO_STATE;
	bbr->undo_bw_shortterm = bbr->bw_shortterm;
	bbr->undo_inflight_shortterm = bbr->inflight_shortterm;
	bbr->undo_inflight_longterm = bbr->inflight_longterm;
}

/* ---- States ---- */

static void enter_drain(struct sock *sk)
{
	struct bbr3 *bbr = of(sk);

	bbr->state = DRAIN;
	bbr->drain_start_round = bbr->round_count;
	/* For those who read TCP's state: the end of slow start. */
	tcp_sk(sk)->snd_ssthresh = inflight(sk, bbr->max_bw_slots[1], 100);
}

static void start_down(struct sock *sk)
{
	struct bbr3 *bbr = of(sk);

	reset_congestion_signals(bbr);
	bbr->probe_up_acked_per_inc = UNLIMITED;
	bbr->rounds_since_probe_up = reciprocal_scale(get_random_u32(), 2);
	bbr->bw_probe_wait_us = PROBE_WAIT_US + reciprocal_scale(get_random_u32(), USEC_PER_SEC);
	bbr->cycle_stamp_us = now_us(sk);
	bbr->ack_phase = ACKS_PROBE_STOPPING;
	start_round(sk);
	bbr->state = PROBE_BW_DOWN;
}

static void start_refill(struct sock *sk)
{
	struct bbr3 *bbr = of(sk);

	reset_short_term_model(bbr);
	bbr->bw_probe_up_rounds = 0;
	bbr->bw_probe_up_acked = 0;
	bbr->prev_probe_precautionary = false;
	bbr->ack_phase = ACKS_REFILLING;
	start_round(sk);
	bbr->state = PROBE_BW_REFILL;
}

static void raise_inflight_longterm_slope(struct sock *sk)
{
	struct bbr3 *bbr = of(sk);
	u32 growth_this_round = 1U << bbr->bw_probe_up_rounds;

	bbr->bw_probe_up_rounds = min(bbr->bw_probe_up_rounds + 1, 30U);
	bbr->probe_up_acked_per_inc = max(tcp_snd_cwnd(tcp_sk(sk)) / growth_this_round, 1U);
}

static void start_up(struct sock *sk, const struct sample *rs)
{
	struct bbr3 *bbr = of(sk);

	bbr->ack_phase = ACKS_PROBE_STARTING;
	start_round(sk);
	reset_full_bw(bbr, rs->rate);
	bbr->state = PROBE_BW_UP;
	raise_inflight_longterm_slope(sk);
}

/* ---- Losses ---- */

static bool is_inflight_too_high(const struct sock *sk, const struct sample *rs)
{
	return (u64)rs->lost * 100 > (u64)rs->tx_in_flight * LOSS_THRESH_PERCENT ||
	       (rs->lost && !tcp_is_sack(tcp_sk(sk)));
}

static void handle_inflight_too_high(struct sock *sk, const struct sample *rs)
{
	struct bbr3 *bbr = of(sk);

	bbr->prev_probe_too_high = true;
	bbr->is_bw_probe_sample = false; /* one reaction a probe */
	if (!rs->is_app_limited)
		bbr->inflight_longterm =
			max_t(u32, rs->tx_in_flight, percent_of(target_inflight(sk), BETA_PERCENT));
	if (bbr->state == PROBE_BW_UP) {
		bbr->undo_state = PROBE_BW_UP;
		start_down(sk);
	}
}

static void note_loss(struct sock *sk)
{
	struct bbr3 *bbr = of(sk);

	if (!bbr->is_loss_in_round) {
		bbr->loss_round_delivered = tcp_sk(sk)->delivered;
		save_state_upon_loss(sk);
	}
	bbr->is_loss_in_round = true;
}

/* The volume in flight at which losses crossed the threshold, within the lost packets of `size`. */
static u32 inflight_at_loss(const struct sample *rs, u32 size)
{
	s64 before = (s64)rs->tx_in_flight - size, lost_before = (s64)rs->lost - size;
	s64 prefix = div_s64(LOSS_THRESH_PERCENT * before - 100 * lost_before, 100 - LOSS_THRESH_PERCENT);

	return max_t(s64, before + max_t(s64, prefix, 0), 1);
}

/* `lost` is C.lost after this packet. */
static void handle_lost_packet(struct sock *sk, const struct sk_buff *skb, u32 lost)
{
	struct bbr3 *bbr = of(sk);
	const struct transmission *sent = transmission(bbr, TCP_SKB_CB(skb)->tx.delivered);
	struct sample rs = {
		.tx_in_flight = sent->in_flight,
		.lost = lost - sent->lost,
		.is_app_limited = TCP_SKB_CB(skb)->tx.is_app_limited,
	};

	if (!bbr->is_bw_probe_sample || !is_inflight_too_high(sk, &rs))
		return;
	rs.tx_in_flight = inflight_at_loss(&rs, tcp_skb_pcount(skb));
	handle_inflight_too_high(sk, &rs);
}

/* Calls handle_lost_packet for each packet that was marked lost since the ACK before. Lost packets wait for
 * retransmission in the order of their marks, so those of earlier ACKs are skipped.
 */
static void handle_losses(struct sock *sk, const struct sample *rs)
{
	struct bbr3 *bbr = of(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 lost = tp->lost - rs->newly_lost, waiting = tp->lost_out - min(tp->retrans_out, tp->lost_out);
	u32 earlier = waiting > rs->newly_lost ? waiting - rs->newly_lost : 0, last_end = 0;
	struct sk_buff *skb = tp->retransmit_skb_hint ?: tcp_rtx_queue_head(sk);
	bool some = false;

	note_loss(sk);
	skb_rbtree_walk_from(skb)
	{
		const struct tcp_skb_cb *cb = TCP_SKB_CB(skb);

		if (lost == tp->lost)
			break;
		if (!(cb->sacked & TCPCB_LOST) || cb->sacked & (TCPCB_SACKED_ACKED | TCPCB_SACKED_RETRANS))
			continue;
		if (earlier) {
			earlier -= min_t(u32, earlier, tcp_skb_pcount(skb));
			continue;
		}
		if (!some || cb->seq != last_end)
			bbr->loss_ranges++;
		some = true;
		last_end = cb->end_seq;
		lost += min_t(u32, tcp_skb_pcount(skb), tp->lost - lost);
		handle_lost_packet(sk, skb, lost);
	}
	if (some)
		return;
	bbr->loss_ranges++;
	if (bbr->is_bw_probe_sample && is_inflight_too_high(sk, rs))
		handle_inflight_too_high(sk, rs);
}

static void handle_ce(struct sock *sk, const struct sample *rs)
{
	struct bbr3 *bbr = of(sk);

	bbr->has_ce = false;
	note_loss(sk);
	if (bbr->is_bw_probe_sample)
		handle_inflight_too_high(sk, rs);
	if (bbr->state != STARTUP)
		return;
	bbr->full_bw_reached = true;
	bbr->inflight_longterm = max(bdp_multiple(bbr, bbr->bw, 100), bbr->inflight_latest);
}

/* ---- Model: each ACK ---- */

static void update_latest_delivery_signals(struct sock *sk, const struct sample *rs)
{
	struct bbr3 *bbr = of(sk);

	bbr->loss_round_start = false;
	if (!rs->rate)
		return;
	bbr->bw_latest = max(bbr->bw_latest, rs->rate);
	bbr->inflight_latest = max(bbr->inflight_latest, rs->delivered);
	if (before(rs->prior_delivered, bbr->loss_round_delivered))
		return;
	bbr->loss_round_delivered = tcp_sk(sk)->delivered;
	bbr->loss_round_start = true;
}

static void update_round(struct sock *sk, const struct sample *rs)
{
	struct bbr3 *bbr = of(sk);

	bbr->round_start = rs->rate && !before(rs->prior_delivered, bbr->next_round_delivered);
	if (!bbr->round_start)
		return;
	start_round(sk);
	bbr->round_count++;
	bbr->rounds_since_probe_up++;
}

static u64 max_bw(const struct bbr3 *bbr)
{
	return max(bbr->max_bw_slots[0], bbr->max_bw_slots[1]);
}

static void advance_max_bw_filter(struct bbr3 *bbr)
{
	if (!bbr->max_bw_slots[1])
		return;
	bbr->max_bw_slots[0] = bbr->max_bw_slots[1];
	bbr->max_bw_slots[1] = 0;
}

/* While not probing: follow the delivery of the last round down, by BETA at most. */
static void adapt_lower_bounds(struct sock *sk)
{
	struct bbr3 *bbr = of(sk);

	if (!bbr->is_loss_in_round || bbr->state == STARTUP || bbr->state == PROBE_BW_REFILL ||
	    bbr->state == PROBE_BW_UP)
		return;
	if (bbr->bw_shortterm == UNLIMITED_RATE)
		bbr->bw_shortterm = max_bw(bbr);
	if (bbr->inflight_shortterm == UNLIMITED)
		bbr->inflight_shortterm = tcp_snd_cwnd(tcp_sk(sk));
	bbr->bw_shortterm = max(bbr->bw_latest, percent_of(bbr->bw_shortterm, BETA_PERCENT));
	bbr->inflight_shortterm =
		max_t(u32, bbr->inflight_latest, percent_of(bbr->inflight_shortterm, BETA_PERCENT));
}

static void update_congestion_signals(struct sock *sk, const struct sample *rs)
{
	struct bbr3 *bbr = of(sk);

	update_round(sk, rs);
	if (rs->rate && (rs->rate >= max_bw(bbr) || !rs->is_app_limited))
		bbr->max_bw_slots[1] = max(bbr->max_bw_slots[1], rs->rate);
	if (!bbr->loss_round_start)
		return;
	adapt_lower_bounds(sk);
	bbr->is_loss_in_round = false;
}

static void update_ack_aggregation(struct sock *sk, const struct sample *rs)
{
	struct bbr3 *bbr = of(sk);
	u64 interval_us = min_t(u64, now_us(sk) - bbr->extra_acked_start_us, MIN_RTT_FILTER_US);
	u64 expected = div_u64(bbr->bw * interval_us, USEC_PER_SEC) >> RATE_SHIFT;
	u32 extra;

	if (bbr->extra_acked_delivered <= expected) {
		bbr->extra_acked_delivered = 0;
		bbr->extra_acked_start_us = now_us(sk);
		expected = 0;
	}
	bbr->extra_acked_delivered += rs->newly_acked;
	extra = min_t(u64, bbr->extra_acked_delivered - expected, tcp_snd_cwnd(tcp_sk(sk)));
	minmax_running_max(&bbr->extra_acked, bbr->full_bw_reached ? EXTRA_ACKED_FILTER_ROUNDS : 1,
			   bbr->round_count, extra);
}

static void check_full_bw_reached(struct bbr3 *bbr, const struct sample *rs)
{
	if (bbr->full_bw_now || !bbr->round_start || rs->is_app_limited)
		return;
	if (rs->rate >= percent_of(bbr->full_bw, FULL_BW_GROWTH_PERCENT)) {
		reset_full_bw(bbr, rs->rate);
		return;
	}
	bbr->full_bw_now = ++bbr->full_bw_count >= FULL_BW_ROUNDS;
	bbr->full_bw_reached |= bbr->full_bw_now;
}

static void check_startup_high_loss(struct sock *sk, const struct sample *rs)
{
	struct bbr3 *bbr = of(sk);
	u32 ranges = bbr->loss_ranges;

	if (!bbr->loss_round_start)
		return;
	bbr->loss_ranges = 0;
	if (bbr->state != STARTUP || inet_csk(sk)->icsk_ca_state != TCP_CA_Recovery ||
	    (tcp_is_sack(tcp_sk(sk)) &&
	     (bbr->round_count <= bbr->recovery_round || ranges < STARTUP_FULL_LOSS_RANGES)) ||
	    !is_inflight_too_high(sk, rs))
		return;
	bbr->undo_state = STARTUP;
	bbr->full_bw_reached = true;
	bbr->inflight_longterm = max(bdp_multiple(bbr, bbr->bw, 100), bbr->inflight_latest);
}

/* ---- ProbeBW ---- */

static bool probes_if_it_is_time(struct sock *sk)
{
	struct bbr3 *bbr = of(sk);
	u32 reno_rounds = min_t(u32, target_inflight(sk), RENO_ROUNDS);

	if (now_us(sk) <= bbr->cycle_stamp_us + bbr->bw_probe_wait_us &&
	    bbr->rounds_since_probe_up < reno_rounds)
		return false;
	start_refill(sk);
	return true;
}

static bool is_time_to_cruise(const struct sock *sk)
{
	u32 in_flight = tcp_packets_in_flight(tcp_sk(sk));

	return in_flight <= inflight_with_headroom(of(sk)) && in_flight <= inflight(sk, max_bw(of(sk)), 100);
}

static bool is_bound_by_longterm(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tp->is_cwnd_limited && tcp_snd_cwnd(tp) >= of(sk)->inflight_longterm;
}

static bool is_time_to_go_down(struct sock *sk, const struct sample *rs)
{
	struct bbr3 *bbr = of(sk);

	if (bbr->prev_probe_too_high && tcp_packets_in_flight(tcp_sk(sk)) >= bbr->inflight_longterm) {
		bbr->prev_probe_precautionary = true;
		return true;
	}
	if (!is_bound_by_longterm(sk))
		return bbr->full_bw_now;
	reset_full_bw(bbr, rs->rate); /* the bound hides what the path could carry */
	return false;
}

static void probe_inflight_longterm_upward(struct sock *sk, const struct sample *rs)
{
	struct bbr3 *bbr = of(sk);
	u32 increments;

	if (!is_bound_by_longterm(sk))
		return;
	bbr->bw_probe_up_acked += rs->newly_acked;
	increments = bbr->bw_probe_up_acked / bbr->probe_up_acked_per_inc;
	bbr->bw_probe_up_acked -= increments * bbr->probe_up_acked_per_inc;
	bbr->inflight_longterm += increments;
	if (bbr->round_start)
		raise_inflight_longterm_slope(sk);
}

/* Returns whether it has changed the state. */
static bool adapt_long_term_model(struct sock *sk, const struct sample *rs)
{
	struct bbr3 *bbr = of(sk);

	if (bbr->ack_phase == ACKS_PROBE_STARTING && bbr->round_start)
		bbr->ack_phase = ACKS_PROBE_FEEDBACK;
	if (bbr->ack_phase == ACKS_PROBE_STOPPING && bbr->round_start) {
		bbr->is_bw_probe_sample = false;
		bbr->ack_phase = ACKS_INIT;
		if (is_probing_bw_state(bbr) && !rs->is_app_limited)
			advance_max_bw_filter(bbr);
		if (is_probing_bw_state(bbr) && bbr->prev_probe_precautionary && !bbr->prev_probe_too_high) {
			start_refill(sk);
			return true;
		}
	}
	if (is_inflight_too_high(sk, rs) || bbr->inflight_longterm == UNLIMITED)
		return false;
	bbr->inflight_longterm = max(bbr->inflight_longterm, rs->tx_in_flight);
	if (bbr->state == PROBE_BW_UP)
		probe_inflight_longterm_upward(sk, rs);
	return false;
}

static void update_probe_bw_cycle_phase(struct sock *sk, const struct sample *rs)
{
	struct bbr3 *bbr = of(sk);

	if (!bbr->full_bw_reached || adapt_long_term_model(sk, rs))
		return;
	switch (bbr->state) {
	case PROBE_BW_DOWN:
		if (!probes_if_it_is_time(sk) && is_time_to_cruise(sk))
			bbr->state = PROBE_BW_CRUISE;
		break;
	case PROBE_BW_CRUISE:
		probes_if_it_is_time(sk);
		break;
	case PROBE_BW_REFILL:
		if (bbr->round_start) {
			bbr->is_bw_probe_sample = true;
			start_up(sk, rs);
		}
		break;
	case PROBE_BW_UP:
		if (is_time_to_go_down(sk, rs)) {
			bbr->prev_probe_too_high = false;
			start_down(sk);
		}
		break;
	}
}

/* ---- ProbeRTT ---- */

static void update_min_rtt(struct sock *sk, const struct sample *rs)
{
	struct bbr3 *bbr = of(sk);

	bbr->probe_rtt_expired = now_us(sk) > bbr->probe_rtt_min_stamp_us + PROBE_RTT_INTERVAL_US;
	if (rs->rtt_us >= 0 && (rs->rtt_us < bbr->probe_rtt_min_us || bbr->probe_rtt_expired)) {
		bbr->probe_rtt_min_us = rs->rtt_us;
		bbr->probe_rtt_min_stamp_us = now_us(sk);
	}
	if (bbr->probe_rtt_min_us < bbr->min_rtt_us ||
	    now_us(sk) > bbr->min_rtt_stamp_us + MIN_RTT_FILTER_US) {
		bbr->min_rtt_us = bbr->probe_rtt_min_us;
		bbr->min_rtt_stamp_us = bbr->probe_rtt_min_stamp_us;
	}
}

static void check_probe_rtt_done(struct sock *sk)
{
	struct bbr3 *bbr = of(sk);

	if (!bbr->probe_rtt_done_us || now_us(sk) <= bbr->probe_rtt_done_us)
		return;
	bbr->probe_rtt_min_stamp_us = now_us(sk);
	restore_cwnd(sk);
	reset_short_term_model(bbr);
	bbr->state = STARTUP;
	if (bbr->full_bw_reached) {
		start_down(sk);
		bbr->state = PROBE_BW_CRUISE;
	}
}

static void handle_probe_rtt(struct sock *sk)
{
	struct bbr3 *bbr = of(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	tp->app_limited = tp->delivered + tcp_packets_in_flight(tp) ?: 1; /* ignore the low rates */
	if (!bbr->probe_rtt_done_us) {
		if (tcp_packets_in_flight(tp) > probe_rtt_cwnd(bbr))
			return;
		bbr->probe_rtt_done_us = now_us(sk) + PROBE_RTT_DURATION_US;
		bbr->probe_rtt_round_done = false;
		start_round(sk);
		return;
	}
	bbr->probe_rtt_round_done |= bbr->round_start;
	if (bbr->probe_rtt_round_done)
		check_probe_rtt_done(sk);
}

static void check_probe_rtt(struct sock *sk, const struct sample *rs)
{
	struct bbr3 *bbr = of(sk);

	if (bbr->state != PROBE_RTT && bbr->probe_rtt_expired && !bbr->idle_restart) {
		bbr->state = PROBE_RTT;
		save_cwnd(sk);
		bbr->probe_rtt_done_us = 0;
		bbr->ack_phase = ACKS_PROBE_STOPPING;
		start_round(sk);
	}
	if (bbr->state == PROBE_RTT)
		handle_probe_rtt(sk);
	if (rs->delivered)
		bbr->idle_restart = false;
}

/* ---- Control ---- */

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

/* ---- TCP's callbacks ---- */

static struct sample sample_of(struct sock *sk, const struct rate_sample *from)
{
	struct bbr3 *bbr = of(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct sample rs = {
		.newly_acked = from->acked_sacked,
		.newly_lost = tp->lost - bbr->lost, /* with those that timers marked */
		.rtt_us = from->rtt_us,
		.is_app_limited = from->is_app_limited,
	};
	const struct transmission *sent;

	bbr->lost = tp->lost;
	if (from->delivered <= 0 || from->interval_us <= 0)
		return rs;
	sent = transmission(bbr, from->prior_delivered);
	rs.delivered = from->delivered;
	rs.prior_delivered = from->prior_delivered;
	rs.rate = div64_ul((u64)from->delivered * USEC_PER_SEC << RATE_SHIFT, from->interval_us);
	rs.tx_in_flight = sent->in_flight;
	rs.lost = tp->lost - sent->lost;
	return rs;
}

static void on_ack(struct sock *sk, const struct rate_sample *from)
{
	struct bbr3 *bbr = of(sk);
	struct sample rs;

	if (!bbr)
		return;
	note_transmissions(bbr, tcp_sk(sk));
	rs = sample_of(sk, from);
	if (rs.newly_lost)
		handle_losses(sk, &rs);
	if (bbr->has_ce)
		handle_ce(sk, &rs);

	update_latest_delivery_signals(sk, &rs);
	update_congestion_signals(sk, &rs);
	update_ack_aggregation(sk, &rs);
	check_full_bw_reached(bbr, &rs);
	check_startup_high_loss(sk, &rs);
	if (bbr->state == STARTUP && bbr->full_bw_reached)
		enter_drain(sk);
	if (bbr->state == DRAIN && (tcp_packets_in_flight(tcp_sk(sk)) <= inflight(sk, bbr->bw, 100) ||
				    bbr->round_count > bbr->drain_start_round + DRAIN_ROUNDS))
		start_down(sk);
	update_probe_bw_cycle_phase(sk, &rs);
	update_min_rtt(sk, &rs);
	check_probe_rtt(sk, &rs);
	if (bbr->loss_round_start) {
		bbr->bw_latest = rs.rate;
		bbr->inflight_latest = rs.delivered;
	}
	bbr->bw = min(max_bw(bbr), bbr->bw_shortterm);

	if (bbr->ca_state >= TCP_CA_Recovery && inet_csk(sk)->icsk_ca_state < TCP_CA_Recovery)
		restore_cwnd(sk);
	bbr->ca_state = inet_csk(sk)->icsk_ca_state;
	set_pacing_rate(sk, GAINS[bbr->state].pacing_percent);
	set_cwnd(sk, &rs);
	note_ack(bbr, tcp_sk(sk));
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
static void cong_control(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	on_ack(sk, rs);
}
#else
static void cong_control(struct sock *sk, const struct rate_sample *rs)
{
	on_ack(sk, rs);
}
#endif

static void begin(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr3 *bbr = kzalloc(sizeof(*bbr), GFP_ATOMIC);
	u64 now;

	*(struct bbr3 **)inet_csk_ca(sk) = bbr;
	if (!bbr) {
		pr_warn_ratelimited("bbr3: no memory: a flow keeps its initial window\n");
		return;
	}
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	now = tp->tcp_mstamp;
	bbr->initial_cwnd = tcp_snd_cwnd(tp);
	bbr->min_rtt_us = bbr->probe_rtt_min_us = tp->srtt_us ? tp->srtt_us >> 3 : U32_MAX;
	bbr->min_rtt_stamp_us = bbr->probe_rtt_min_stamp_us = bbr->extra_acked_start_us = now;
	bbr->inflight_longterm = bbr->probe_up_acked_per_inc = UNLIMITED;
	bbr->next_round_delivered = bbr->loss_round_delivered = tp->delivered;
	bbr->lost = tp->lost;
	bbr->undo_state = NO_STATE;
	reset_short_term_model(bbr);
	minmax_reset(&bbr->extra_acked, 0, 0);
	bbr->entries = 1;
	*entry(bbr, 0) = (struct transmission){tp->delivered, tp->lost, tcp_packets_in_flight(tp)};
	bbr->segs_out = tp->data_segs_out;
	bbr->in_flight = tcp_packets_in_flight(tp);
	init_pacing_rate(sk);
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
}

static void end(struct sock *sk)
{
	kfree(of(sk));
	*(struct bbr3 **)inet_csk_ca(sk) = NULL;
}

/* Called when fast recovery, a reaction to ECN, or a timeout begins. */
static u32 ssthresh(struct sock *sk)
{
	if (of(sk))
		save_state_upon_loss(sk);
	return tcp_sk(sk)->snd_ssthresh;
}

static void set_state(struct sock *sk, u8 ca_state)
{
	struct bbr3 *bbr = of(sk);

	if (!bbr)
		return;
	if (ca_state == TCP_CA_Recovery)
		bbr->recovery_round = bbr->round_count;
	if (ca_state == TCP_CA_CWR)
		bbr->has_ce = true;
	if (ca_state == TCP_CA_Loss)
		bbr->ca_state = TCP_CA_Loss;
}

/* The recovery was spurious. */
static u32 undo_cwnd(struct sock *sk)
{
	struct bbr3 *bbr = of(sk);
	u8 probing;

	if (!bbr)
		return tcp_snd_cwnd(tcp_sk(sk));
	probing = bbr->undo_state;
	bbr->undo_state = NO_STATE;
	restore_cwnd(sk);
	bbr->is_loss_in_round = false;
	reset_full_bw(bbr, 0);
	bbr->bw_shortterm = max(bbr->bw_shortterm, bbr->undo_bw_shortterm);
	bbr->inflight_shortterm = max(bbr->inflight_shortterm, bbr->undo_inflight_shortterm);
	bbr->inflight_longterm = max(bbr->inflight_longterm, bbr->undo_inflight_longterm);
	if (probing == STARTUP && bbr->state != STARTUP) {
		bbr->full_bw_reached = false;
		if (bbr->state != PROBE_RTT)
			bbr->state = STARTUP;
	} else if (probing == PROBE_BW_UP && bbr->state != PROBE_BW_UP && bbr->state != PROBE_RTT) {
		start_refill(sk);
	}
	return tcp_snd_cwnd(tcp_sk(sk));
}

static void cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	struct bbr3 *bbr = of(sk);

	if (!bbr || event != CA_EVENT_TX_START || !tcp_sk(sk)->app_limited)
		return;
	bbr->idle_restart = true;
	bbr->extra_acked_start_us = now_us(sk);
	if (is_probing_bw_state(bbr))
		set_pacing_rate(sk, 100);
	else if (bbr->state == PROBE_RTT)
		check_probe_rtt_done(sk);
}

/* Room for retransmissions beside twice the window of Startup. */
static u32 sndbuf_expand(struct sock *sk)
{
	return 3;
}

static struct tcp_congestion_ops algorithm __read_mostly = {
	.name = "bbr3",
	.owner = THIS_MODULE,
	.flags = TCP_CONG_NON_RESTRICTED,
	.init = begin,
	.release = end,
	.cong_control = cong_control,
	.ssthresh = ssthresh,
	.set_state = set_state,
	.undo_cwnd = undo_cwnd,
	.cwnd_event = cwnd_event,
	.sndbuf_expand = sndbuf_expand,
};

static int __init start(void)
{
	return tcp_register_congestion_control(&algorithm);
}

static void __exit stop(void)
{
	tcp_unregister_congestion_control(&algorithm);
}

module_init(start);
module_exit(stop);

MODULE_DESCRIPTION("BBRv3 after draft-ietf-ccwg-bbr");
MODULE_LICENSE("Dual MIT/GPL");
