// SPDX-License-Identifier: MIT
#include "measure.h"

#include <string.h>

enum {
	LINK_EXTRA_BYTES = 38, /* Ethernet header, preamble, FCS and gap */
	LEAST_LINK_BYTES = 84,
	STAMPS_A_RTT = 8, /* of the timestamps, and ACKs, that are remembered */
	NEAR_WINDOW = 3,  /* segments below the receiver's window (Siekkinen et al.) */
	FLAT_ROUNDS = 4,  /* after which a window that does not grow is at a cap */
	SHORT_SHARE = 8,  /* a round is the application's if each SHORT_SHARE-th segment is short */
};

#define MS		 1000000LL
#define UNKNOWN_RTT	 (100 * MS)
#define OF_ACCESS	 0.9
#define BUSY		 0.9
#define PEAK_DECAY	 0.95
#define AFTER_LOSS	 0.8 /* of an RTT: a segment that fills a hole earlier was reordered */
#define FARTHEST	 (1u << 30)
#define ONE_WAY_PAUSE_NS (50 * MS)

static int64_t rtt(const struct measured *one)
{
	const struct half *half = one->half;

	if (half[0].least_ns && half[1].least_ns)
		return half[0].least_ns + half[1].least_ns;
	return one->handshake_ns > 0 ? one->handshake_ns : 0;
}

static int64_t rtt_or_so(const struct measured *one)
{
	int64_t known = rtt(one);

	return known ? known : UNKNOWN_RTT;
}

uint64_t measure_bytes_on_link(uint64_t ip_bytes, uint64_t packets)
{
	uint64_t bytes = ip_bytes + packets * LINK_EXTRA_BYTES;

	return bytes < packets * LEAST_LINK_BYTES ? packets * LEAST_LINK_BYTES : bytes;
}

static struct stamp *last_of(struct stamp *stamps, uint8_t next, unsigned int back)
{
	return &stamps[(next + STAMPS - back) % STAMPS];
}

static void append(struct stamp *stamps, uint8_t *next, int64_t ns, uint32_t value)
{
	stamps[*next] = (struct stamp){ns, value, false};
	*next = (*next + 1) % STAMPS;
}

/* Remembers the first segment of a timestamp, unless the last is too near: STAMPS of them reach back two round trips. */
static void remember_stamp(struct half *half, int64_t now_ns, uint32_t value, int64_t rtt_ns)
{
	const struct stamp *last = last_of(half->stamps, half->stamp, 1);

	if (last->ns && (int32_t)(value - half->newest) <= 0)
		return;
	half->newest = value;
	if (!last->ns || now_ns - last->ns >= rtt_ns / STAMPS_A_RTT)
		append(half->stamps, &half->stamp, now_ns, value);
}

/* Remembers an ACK in place of the last one if that is too near to the one before it. */
static void remember_ack(struct half *half, int64_t now_ns, uint32_t value, int64_t way_ns)
{
	struct stamp *last = last_of(half->acks, half->ack, 1);
	const struct stamp *before = last_of(half->acks, half->ack, 2);

	if (before->ns && last->ns - before->ns < way_ns / STAMPS_A_RTT)
		*last = (struct stamp){now_ns, value, false};
	else
		append(half->acks, &half->ack, now_ns, value);
}

/* An echo of one of `sent`'s timestamps; the first echo of the first segment that had it is a round trip (Nichols). */
static void echoed(struct half *sent, int64_t now_ns, uint32_t value)
{
	for (struct stamp *stamp = sent->stamps; stamp < sent->stamps + STAMPS; stamp++) {
		if (!stamp->ns || stamp->value != value || stamp->is_used || now_ns <= stamp->ns)
			continue;
		stamp->is_used = true;
		median_add(&sent->median, (double)(now_ns - stamp->ns));
		if (!sent->least_ns || now_ns - stamp->ns < sent->least_ns)
			sent->least_ns = now_ns - stamp->ns;
	}
}

/* The ACK that the sender knew when it sent what passes now: the last that passed a way to the sender and back ago. */
static uint32_t known_ack(struct half *half, int64_t now_ns, int64_t way_ns)
{
	const struct stamp *later = NULL;
	const struct stamp *stamp;
	int64_t then_ns = now_ns - way_ns;
	double part;

	if (!way_ns)
		return half->acked;
	for (unsigned int back = 1; back <= STAMPS; back++) {
		stamp = last_of(half->acks, half->ack, back);
		if (!stamp->ns)
			break;
		if (stamp->ns <= then_ns) {
			if (!later)
				return stamp->value;
			part = (double)(then_ns - stamp->ns) / (double)(later->ns - stamp->ns);
			return stamp->value + (uint32_t)(part * (later->value - stamp->value));
		}
		later = stamp;
	}
	return later ? later->value : half->acked;
}

static void finish_round(const struct link *link, struct half *half, int64_t end_ns)
{
	const struct round *round = &half->round;
	int64_t took_ns = end_ns - round->start_ns;
	uint64_t link_bytes = link->bytes[half->way] - round->link_bytes;
	double bps, busy;
	bool is_flat;

	if (took_ns <= 0)
		return;
	bps = 8e9 * (double)round->bytes / (double)took_ns;
	busy = half->way < WAYS ? 8e9 * (double)link_bytes / (double)took_ns / (double)link->rate_bps : 0;
	half->link_peak = busy > PEAK_DECAY * half->link_peak ? busy : PEAK_DECAY * half->link_peak;
	half->recovers |= round->has_loss;
	is_flat = !round->has_loss && half->flat &&
		  round->in_flight <= half->flat_bytes + 2 * half->mss_bytes + half->flat_bytes / 100 &&
		  round->in_flight + 2 * half->mss_bytes + half->flat_bytes / 100 >= half->flat_bytes;
	if (!is_flat)
		half->flat_bytes = round->in_flight;
	half->flat = is_flat ? half->flat + 1 : 1;
	if (half->flat >= FLAT_ROUNDS)
		half->recovers = false;
	if (round->short_segments * SHORT_SHARE >= round->segments && round->short_segments)
		half->limited_ns[APPLICATION] += (uint64_t)took_ns;
	else if (round->met_window)
		half->limited_ns[WINDOW] += (uint64_t)took_ns;
	else if (bps >= OF_ACCESS * half->access_bps && half->access_bps > 0 &&
		 half->access_bps < BUSY * (double)link->rate_bps)
		half->limited_ns[ACCESS] += (uint64_t)took_ns;
	else if (busy >= BUSY || (half->recovers && half->link_peak >= BUSY))
		half->limited_ns[LINK] += (uint64_t)took_ns;
	else if (half->flat >= FLAT_ROUNDS && half->in_flight)
		half->limited_ns[WINDOW] += (uint64_t)took_ns;
	else
		half->limited_ns[half->recovers ? ELSEWHERE : START_UP] += (uint64_t)took_ns;
}

static void begin_round(const struct link *link, struct half *half, int64_t now_ns)
{
	half->round = (struct round){.start_ns = now_ns, .link_bytes = link->bytes[half->way]};
}

/* A pause of the application: all was acknowledged, and the sender, who may always send a segment then, did not. */
static void end_pause(const struct link *link, const struct measured *one, struct half *half, int64_t way_ns,
		      int64_t now_ns, bool is_new)
{
	int64_t since_ns = half->all_acked_ns, idle_ns, least_ns = rtt_or_so(one) / 2;

	if (half->has_ack) {
		if (!half->is_waiting)
			return;
		idle_ns = now_ns - half->all_acked_ns - way_ns;
		least_ns = least_ns < MS ? MS : least_ns;
	} else { /* its ACKs were not captured */
		since_ns = half->last_ns;
		idle_ns = now_ns - since_ns;
		least_ns = 4 * least_ns < ONE_WAY_PAUSE_NS ? ONE_WAY_PAUSE_NS : 4 * least_ns;
	}
	if (!half->last_ns || !is_new || idle_ns <= least_ns)
		return;
	half->pauses++;
	half->pause_ns += idle_ns;
	finish_round(link, half, since_ns);
	half->limited_ns[APPLICATION] +=
		(uint64_t)(now_ns - (since_ns > half->round.start_ns ? since_ns : half->round.start_ns));
	begin_round(link, half, now_ns);
	memset(half->recent, 0, sizeof(half->recent));
}

static void measure_access(struct half *half, int64_t now_ns, uint64_t bytes)
{
	int64_t since_ns;
	double bps;

	half->link_bytes += bytes;
	since_ns = half->recent[0].ns;
	if (since_ns && now_ns > since_ns) {
		bps = 8e9 * (double)(half->link_bytes - half->recent[0].bytes) / (double)(now_ns - since_ns);
		half->access_bps = bps > half->access_bps ? bps : half->access_bps;
	}
	memmove(half->recent, half->recent + 1, sizeof(half->recent) - sizeof(*half->recent));
	half->recent[RATE_GAPS - 1].ns = now_ns;
	half->recent[RATE_GAPS - 1].bytes = half->link_bytes;
}

/* Whether the segment has bytes that did not pass before. */
static bool is_new_data(struct measured *one, struct half *half, const struct captured_packet *packet,
			int64_t now_ns)
{
	uint32_t end = packet->tcp_seq + packet->payload_bytes;
	int32_t ahead = (int32_t)(packet->tcp_seq - half->next);

	if (half->begun && (int32_t)(end - half->next) <= 0) {
		bool is_early = packet->ip_id && (int16_t)(packet->ip_id - half->next_id) < 0 &&
				half->hole_ns && now_ns - half->hole_ns < AFTER_LOSS * rtt_or_so(one);

		half->reordered += is_early;
		half->retransmissions += !is_early;
		half->round.has_loss |= !is_early;
		return false;
	}
	if (half->begun && ahead > 0)
		half->hole_ns = now_ns;
	half->begun = true;
	half->next = end;
	half->next_id = (uint16_t)packet->ip_id;
	return true;
}

static void data(const struct link *link, struct measured *one, int side,
		 const struct captured_packet *packet, uint64_t packets)
{
	struct half *half = &one->half[side];
	const struct half *other = &one->half[!side];
	int64_t now_ns = link->now_ns, way_ns = other->least_ns;
	uint64_t bytes = measure_bytes_on_link(packet->ip_bytes, packets);
	uint32_t segment = packets > 1 ? half->mss_bytes : packet->payload_bytes, in_flight;
	bool is_new;

	if (half->begun && packet->payload_bytes <= 1 && packet->tcp_seq == half->next - 1)
		return; /* keepalive */
	is_new = is_new_data(one, half, packet, now_ns);
	half->mss_bytes = segment > half->mss_bytes ? segment : half->mss_bytes;
	end_pause(link, one, half, way_ns, now_ns, is_new);
	half->is_waiting = false;
	if (!half->first_ns) {
		half->first_ns = now_ns;
		begin_round(link, half, now_ns);
	} else if (now_ns - half->round.start_ns >= rtt_or_so(one)) {
		half->round.bytes += bytes;
		finish_round(link, half, now_ns);
		begin_round(link, half, now_ns);
	} else if (half->round.segments) {
		half->round.bytes += bytes;
	}
	half->round.segments += (uint32_t)packets;
	half->round.short_segments += is_new && packets == 1 && packet->payload_bytes < half->mss_bytes;
	half->last_ns = now_ns;
	measure_access(half, now_ns, bytes);
	if (half->has_ack) {
		in_flight = half->next - known_ack(half, now_ns, way_ns);
		if (in_flight < FARTHEST) {
			half->in_flight = in_flight > half->in_flight ? in_flight : half->in_flight;
			half->round.in_flight =
				in_flight > half->round.in_flight ? in_flight : half->round.in_flight;
			half->round.met_window |=
				other->window_bytes &&
				in_flight + NEAR_WINDOW * (uint64_t)half->mss_bytes > other->window_bytes;
		}
	}
}

/* What `packet` of side !side acknowledges of side's data. */
static void acknowledged(struct measured *one, int side, const struct captured_packet *packet, int64_t now_ns)
{
	struct half *half = &one->half[side];
	uint32_t ack = packet->tcp_ack;
	int32_t beyond = (int32_t)(ack - half->next);

	if (half->begun && beyond > 0 && beyond < (int32_t)FARTHEST) {
		half->unseen_bytes += beyond > 1 ? (uint32_t)beyond : 0; /* one may be of a FIN */
		half->next = ack;
	}
	if (!half->begun) {
		half->begun = true;
		half->next = ack;
	}
	if (!half->has_ack || (int32_t)(ack - half->acked) > 0) {
		half->acked = ack;
		remember_ack(half, now_ns, ack, one->half[!side].least_ns);
		if (half->next == ack) {
			half->is_waiting = true;
			half->all_acked_ns = now_ns;
		}
	}
	half->has_ack = true;
}

static void handshake(struct measured *one, int side, const struct captured_packet *packet, int64_t now_ns)
{
	uint8_t control = packet->tcp_flags & (TCP_SYN | TCP_ACK);

	if (control == TCP_SYN && !side) {
		one->syn_again |= one->syn_ns != 0;
		one->syn_ns = now_ns;
		one->syn_seq = packet->tcp_seq;
	} else if (control == (TCP_SYN | TCP_ACK) && side) {
		one->syn_again |= one->has_answer;
		one->has_answer = true;
	} else if (!side && one->syn_ns && !one->handshake_ns) {
		one->handshake_ns =
			one->syn_again || !(packet->tcp_flags & TCP_ACK) ? -1 : now_ns - one->syn_ns;
	}
}

bool measure_segment(const struct link *link, struct measured *one, int side,
		     const struct captured_packet *packet, uint64_t packets)
{
	struct half *half = &one->half[side];
	int64_t now_ns = link->now_ns;
	bool has_scale = one->half[0].has_syn && one->half[1].has_syn;

	handshake(one, side, packet, now_ns);
	if (packet->tcp_flags & TCP_SYN) {
		half->has_syn = true;
		half->scale = packet->window_scale;
		half->begun = true;
		half->next = packet->tcp_seq + 1;
	} else if (has_scale) {
		bool scales = half->scale != CAPTURED_NO_SCALE && one->half[!side].scale != CAPTURED_NO_SCALE;

		half->window_bytes = (uint64_t)packet->tcp_window << (scales ? half->scale & 15 : 0);
		if (half->window_bytes > half->most_window_bytes)
			half->most_window_bytes = half->window_bytes;
	}
	if (packet->tcp_flags & TCP_ACK && !(packet->tcp_flags & TCP_RST))
		acknowledged(one, !side, packet, now_ns);
	if (packet->flags & CAPTURED_HAS_TIMESTAMPS) {
		if (packet->tcp_flags & TCP_ACK && !(packet->payload_bytes && half->is_waiting))
			echoed(&one->half[!side], now_ns, packet->ts_echo);
		remember_stamp(half, now_ns, packet->ts_value, rtt(one));
	}
	if (packet->payload_bytes && !(packet->tcp_flags & (TCP_SYN | TCP_RST)))
		data(link, one, side, packet, packets);
	if (packet->tcp_flags & TCP_FIN && half->begun &&
	    packet->tcp_seq + packet->payload_bytes == half->next)
		half->next++;
	half->has_end |= (packet->tcp_flags & (TCP_FIN | TCP_RST)) != 0;
	return packet->tcp_flags & TCP_RST || (one->half[0].has_end && one->half[1].has_end);
}

struct connection measure_row(const struct link *link, struct measured *one, bool is_forgotten)
{
	struct half *out = &one->half[0], *back = &one->half[1];
	bool data_is_back = back->payload_bytes > out->payload_bytes;
	struct half *half = data_is_back ? back : out;
	const struct half *other = data_is_back ? out : back;
	int64_t rtt_ns = rtt(one);
	struct connection row = {
		.start_ns = (uint64_t)one->start_ns,
		.end_ns = (uint64_t)one->last_ns,
		.src_addr_hi = one->addr[0][0],
		.src_addr_lo = one->addr[0][1],
		.dst_addr_hi = one->addr[1][0],
		.dst_addr_lo = one->addr[1][1],
		.src_port = one->port[0],
		.dst_port = one->port[1],
		.ip_protocol = one->protocol,
		.packets_out = out->packets,
		.packets_back = back->packets,
		.ip_bytes_out = out->ip_bytes,
		.ip_bytes_back = back->ip_bytes,
		.payload_bytes_out = out->payload_bytes,
		.payload_bytes_back = back->payload_bytes,
		.retransmissions_out = out->retransmissions,
		.retransmissions_back = back->retransmissions,
		.reordered = out->reordered + back->reordered,
		.unseen_bytes = out->unseen_bytes + back->unseen_bytes,
	};

	if (half->first_ns)
		finish_round(link, half, half->last_ns);
	if (one->handshake_ns > 0)
		row.handshake_ns = (uint64_t)one->handshake_ns;
	if (out->least_ns && back->least_ns) {
		row.rtt_least_ns = (uint64_t)rtt_ns;
		row.rtt_samples =
			out->median.count < back->median.count ? out->median.count : back->median.count;
		row.rtt_median_ns = (uint64_t)(median_of(&out->median) + median_of(&back->median));
	}
	row.in_flight_bytes = half->in_flight;
	row.window_bytes = other->most_window_bytes;
	row.access_bps = (uint64_t)half->access_bps;
	row.mss_bytes = half->mss_bytes;
	row.pauses = half->pauses;
	row.pause_ns = (uint64_t)half->pause_ns;
	row.application_ns = half->limited_ns[APPLICATION];
	row.window_ns = half->limited_ns[WINDOW];
	row.access_ns = half->limited_ns[ACCESS];
	row.link_ns = half->limited_ns[LINK];
	row.elsewhere_ns = half->limited_ns[ELSEWHERE];
	row.start_up_ns = half->limited_ns[START_UP];
	row.flags =
		(uint8_t)((one->protocol == PROTOCOL_TCP ? CONNECTION_IS_TCP : 0) |
			  (one->syn_ns || back->has_syn ? CONNECTION_HAS_START : 0) |
			  (out->has_end || back->has_end ? CONNECTION_HAS_END : 0) |
			  (out->packets && back->packets ? CONNECTION_BOTH_WAYS : 0) |
			  (data_is_back ? CONNECTION_DATA_IS_BACK : 0) |
			  ((out->packets ? out->way == 0 : back->way == 1) ? CONNECTION_OUT_IS_FORWARD : 0) |
			  (is_forgotten ? CONNECTION_FORGOTTEN : 0) |
			  (out->has_syn && back->has_syn ? CONNECTION_HAS_WINDOW : 0));
	return row;
}
