// SPDX-License-Identifier: GPL-2.0 OR MIT
/* BBRv3 after draft-ietf-ccwg-bbr (state of August 2026), for kernels without it. Names are the draft's. Windows and
 * volumes are in packets, because the kernel counts packets.
 *
 * Differences from the draft:
 * - P.tx_in_flight and P.lost. Linux keeps P.delivered for each packet, but not the packets in flight and lost at its
 *   transmission. A history of ACKs, indexed by the delivered count, gives both. An entry covers the packets sent until
 *   the next ACK, or until 1/128 of the packets in flight were delivered, if that is later.
 * - Lost packets. Linux does not call a congestion control for each packet that it marks lost. The packets that an ACK
 *   marks are looked up in the retransmission queue. Packets that a timer (RACK, RTO) marks count at the next ACK. If
 *   all of them were retransmitted by then, the model uses that ACK's own sample instead.
 * - C.send_quantum is the kernel's own (tcp_tso_autosize). offload_budget assumes the draft's quantum, bounded by the
 *   number of segments that the interface takes at once.
 * - A cycle without a sample says nothing about the bandwidth. So an empty slot of the bandwidth filter does not
 *   replace the previous slot.
 * - CE marks. The draft requires a reaction but does not specify it. Here a reaction of TCP to CE (at most one per RTT)
 *   counts as a loss, and ends Startup. If the marked packets were a probe, the reaction also counts as too much in
 *   flight. Google's BBRv3 estimates alpha instead, as DCTCP does.
 * - HandleRestartFromIdle runs when TCP starts to send with nothing in flight (CA_EVENT_TX_START).
 * PLB and the ECN of Google's kernel are not in the draft, and not here.
 *
 * Not for BPF struct_ops: the walk over the retransmission queue and the memory from kmalloc have no counterpart there.
 */
#include <linux/slab.h>
#include <linux/version.h>

#include "bbr3/control.h"
#include "bbr3/probe_bw.h"
#include "bbr3/probe_rtt.h"
#include "register.h"

static struct sample sample_of(struct sock *sk, const struct rate_sample *from)
{
	struct bbr3 *bbr = of(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct sample rs = {
		.newly_acked = from->acked_sacked,
		.newly_lost = tp->lost - bbr->lost, /* includes packets that timers marked */
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

/* The size of the send buffer in windows: more than the default of 2, because Startup can go on during recovery (as in
 * Linux's BBR).
 */
static u32 sndbuf_expand(struct sock *sk)
{
	return 3;
}

CONGESTION_CONTROL(struct bbr3 *, .flags = TCP_CONG_NON_RESTRICTED, .init = begin, .release = end,
		   .cong_control = cong_control, .ssthresh = ssthresh, .set_state = set_state,
		   .undo_cwnd = undo_cwnd, .cwnd_event = cwnd_event, .sndbuf_expand = sndbuf_expand);

MODULE_DESCRIPTION("BBRv3 after draft-ietf-ccwg-bbr");
MODULE_LICENSE("Dual MIT/GPL");
