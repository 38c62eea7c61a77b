/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The state of a BBRv3 flow, and the constants of the draft. */
#ifndef BBR3_STATE_H
#define BBR3_STATE_H

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
	HISTORY = 256,			  /* entries; the packets in flight need half of them */
};

#define UNLIMITED      U32_MAX /* packets */
#define UNLIMITED_RATE U64_MAX

/* Rates are in packets per second, times 2^16. */
#define RATE_SHIFT 16

/* An entry of the history: the packets sent from the time when the connection's delivered count was `delivered` until
 * the next entry. `lost` is the count of lost packets at that time. `in_flight` is the most packets in flight until the
 * next entry.
 */
struct transmission {
	u32 delivered, lost, in_flight;
};

struct bbr3 {
	u64 bw, bw_shortterm, bw_latest, max_bw_slots[2]; /* slots: the previous cycle, and this one */
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
	u32 newest, entries, segs_out, in_flight; /* of the history; the last two as of the previous ACK */
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

#endif
