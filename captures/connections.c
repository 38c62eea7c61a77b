// SPDX-License-Identifier: MIT
#include "connections.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "quantile.h"

enum {
	FIN = 0x01,
	SYN = 0x02,
	RST = 0x04,
	ACK = 0x10,
	PROTOCOL_TCP = 6,
	LINK_EXTRA_BYTES = 38, /* Ethernet header, preamble, FCS and gap */
	LEAST_LINK_BYTES = 84,
	LEAST_POOL = 64,
	RATE_GAPS = 5,	  /* packets that the access rate is measured over */
	STAMPS = 16,	  /* TCP timestamps, and ACKs, that are remembered */
	STAMPS_A_RTT = 8, /* so many of them in a round trip */
	NEAR_WINDOW = 3,  /* segments below the receiver's window (Siekkinen et al.) */
	FLAT_ROUNDS = 4,  /* after which a window that does not grow is at a cap */
	SHORT_SHARE = 8,  /* a round is the application's if each SHORT_SHARE-th segment is short */
};

#define MS		 1000000LL
#define SECOND		 (1000 * MS)
#define UNKNOWN_RTT	 (100 * MS)
#define OF_ACCESS	 0.9
#define BUSY		 0.9
#define PEAK_DECAY	 0.95
#define AFTER_LOSS	 0.8 /* of an RTT: a segment that fills a hole earlier was reordered */
#define NONE		 UINT32_MAX
#define FARTHEST	 (1u << 30)
#define ONE_WAY_PAUSE_NS (50 * MS)

enum lists { ENDED, DATAGRAMS, OPEN, LISTS };
static const int64_t timeout_ns[LISTS] = {10 * SECOND, 120 * SECOND, 900 * SECOND};

struct stamp {
	int64_t ns;
	uint32_t value;
	bool is_used;
};

struct round {
	int64_t start_ns;
	uint64_t bytes;	     /* on the link, behind its first packet */
	uint64_t link_bytes; /* that the link had carried at its start */
	uint32_t segments, short_segments, in_flight;
	bool met_window, has_loss;
};

/* What one side sends. Its ACKs belong to the other's half. */
struct half {
	uint64_t packets, ip_bytes, payload_bytes, unseen_bytes;
	uint32_t retransmissions, reordered, pauses, mss_bytes;
	uint32_t next, acked, in_flight;
	uint16_t next_id; /* IP id of the packet that has the highest bytes */
	uint8_t scale, way;
	bool begun, has_ack, has_syn, has_end,
		is_waiting;			  /* is_waiting: all is acknowledged since all_acked_ns */
	uint64_t window_bytes, most_window_bytes; /* that this side advertises */
	int64_t first_ns, last_ns, all_acked_ns, hole_ns; /* of data */
	int64_t pause_ns;
	struct stamp stamps[STAMPS], acks[STAMPS];
	uint8_t stamp, ack;   /* the next of each to be written */
	uint32_t newest;      /* the highest timestamp */
	int64_t least_ns;     /* from a segment of this side to its echo; 0: unknown */
	struct median median; /* of these times */
	struct {
		int64_t ns;
		uint64_t bytes;
	} recent[RATE_GAPS]; /* the last data packets */
	uint64_t link_bytes; /* of all data */
	double access_bps, link_peak;
	struct round round;
	uint32_t flat, flat_bytes;
	bool recovers;
	uint64_t limited_ns[6];
};

enum limits { APPLICATION, WINDOW, ACCESS, LINK, ELSEWHERE, START_UP };

struct open {
	uint64_t addr[2][2]; /* of the initiator and its peer: high, low */
	uint16_t port[2];
	uint8_t protocol, list;
	uint32_t chain, newer, older;
	int64_t start_ns, last_ns, handshake_ns, syn_ns;
	uint32_t syn_seq;
	bool syn_again, has_answer;
	struct half half[2];
};

struct connections {
	struct connections_settings settings;
	struct open *pool;
	uint32_t *slots; /* heads of chains; as many as the pool has places, a power of 2 */
	uint32_t places, count, free;
	struct {
		uint32_t oldest, newest;
	} list[LISTS];
	uint64_t link_bytes[WAYS + 1];
	int64_t now_ns;
};

static uint32_t least(uint32_t one, uint32_t other)
{
	return one < other ? one : other;
}

/* ---- the table ---- */

static uint64_t mixed(uint64_t value)
{
	value ^= value >> 32;
	value *= 0x9e3779b97f4a7c15u;
	return value ^ value >> 29;
}

/* The same for both ways. */
static uint32_t slot_of(const struct connections *all, const uint64_t src[2], uint16_t src_port,
			const uint64_t dst[2], uint16_t dst_port, uint8_t protocol)
{
	uint64_t one = mixed(mixed(src[0]) + src[1] * 3 + src_port);
	uint64_t other = mixed(mixed(dst[0]) + dst[1] * 3 + dst_port);

	return (uint32_t)mixed(one + other + protocol) & (all->places - 1);
}

static uint32_t slot(const struct connections *all, const struct open *one)
{
	return slot_of(all, one->addr[0], one->port[0], one->addr[1], one->port[1], one->protocol);
}

static void unlink_age(struct connections *all, uint32_t number)
{
	struct open *one = &all->pool[number];

	*(one->older == NONE ? &all->list[one->list].oldest : &all->pool[one->older].newer) = one->newer;
	*(one->newer == NONE ? &all->list[one->list].newest : &all->pool[one->newer].older) = one->older;
}

static void link_age(struct connections *all, uint32_t number, enum lists list)
{
	struct open *one = &all->pool[number];

	one->list = list;
	one->newer = NONE;
	one->older = all->list[list].newest;
	*(one->older == NONE ? &all->list[list].oldest : &all->pool[one->older].newer) = number;
	all->list[list].newest = number;
}

static int grow(struct connections *all)
{
	uint32_t before = all->places, places = before ? 2 * before : LEAST_POOL;
	struct open *pool = realloc(all->pool, places * sizeof(*pool));
	uint32_t *slots;

	if (!pool)
		return -ENOMEM;
	all->pool = pool;
	slots = realloc(all->slots, places * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	all->slots = slots;
	memset(slots, 0xff, places * sizeof(*slots));
	for (uint32_t number = before; number < places; number++)
		pool[number].chain = number + 1 < places ? number + 1 : NONE;
	all->free = before;
	/* All places before were taken. */
	all->places = places;
	for (uint32_t number = 0; number < before; number++) {
		pool[number].chain = slots[slot(all, &pool[number])];
		slots[slot(all, &pool[number])] = number;
	}
	return 0;
}

/* ---- measuring ---- */

static int64_t rtt(const struct open *one)
{
	const struct half *half = one->half;

	if (half[0].least_ns && half[1].least_ns)
		return half[0].least_ns + half[1].least_ns;
	return one->handshake_ns > 0 ? one->handshake_ns : 0;
}

static int64_t rtt_or_so(const struct open *one)
{
	int64_t known = rtt(one);

	return known ? known : UNKNOWN_RTT;
}

static uint64_t on_link(uint64_t ip_bytes, uint64_t packets)
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

static void finish_round(const struct connections *all, struct half *half, int64_t end_ns)
{
	const struct round *round = &half->round;
	int64_t took_ns = end_ns - round->start_ns;
	uint64_t link_bytes = all->link_bytes[half->way] - round->link_bytes;
	double bps, busy;
	bool is_flat;

	if (took_ns <= 0)
		return;
	bps = 8e9 * (double)round->bytes / (double)took_ns;
	busy = half->way < WAYS ? 8e9 * (double)link_bytes / (double)took_ns / (double)all->settings.rate_bps
				: 0;
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
		 half->access_bps < BUSY * (double)all->settings.rate_bps)
		half->limited_ns[ACCESS] += (uint64_t)took_ns;
	else if (busy >= BUSY || (half->recovers && half->link_peak >= BUSY))
		half->limited_ns[LINK] += (uint64_t)took_ns;
	else if (half->flat >= FLAT_ROUNDS && half->in_flight)
		half->limited_ns[WINDOW] += (uint64_t)took_ns;
	else
		half->limited_ns[half->recovers ? ELSEWHERE : START_UP] += (uint64_t)took_ns;
}

static void begin_round(const struct connections *all, struct half *half, int64_t now_ns)
{
	half->round = (struct round){.start_ns = now_ns, .link_bytes = all->link_bytes[half->way]};
}

/* A pause of the application: all was acknowledged, and the sender, who may always send a segment then, did not. */
static void end_pause(const struct connections *all, const struct open *one, struct half *half,
		      int64_t way_ns, int64_t now_ns, bool is_new)
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
	finish_round(all, half, since_ns);
	half->limited_ns[APPLICATION] +=
		(uint64_t)(now_ns - (since_ns > half->round.start_ns ? since_ns : half->round.start_ns));
	begin_round(all, half, now_ns);
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
static bool is_new_data(struct open *one, struct half *half, const struct captured_packet *packet,
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

static void data(struct connections *all, struct open *one, int side, const struct captured_packet *packet,
		 uint64_t packets)
{
	struct half *half = &one->half[side];
	const struct half *other = &one->half[!side];
	int64_t now_ns = all->now_ns, way_ns = other->least_ns;
	uint64_t bytes = on_link(packet->ip_bytes, packets);
	uint32_t segment = packets > 1 ? half->mss_bytes : packet->payload_bytes, in_flight;
	bool is_new;

	if (half->begun && packet->payload_bytes <= 1 && packet->tcp_seq == half->next - 1)
		return; /* keepalive */
	is_new = is_new_data(one, half, packet, now_ns);
	half->mss_bytes = segment > half->mss_bytes ? segment : half->mss_bytes;
	end_pause(all, one, half, way_ns, now_ns, is_new);
	half->is_waiting = false;
	if (!half->first_ns) {
		half->first_ns = now_ns;
		begin_round(all, half, now_ns);
	} else if (now_ns - half->round.start_ns >= rtt_or_so(one)) {
		half->round.bytes += bytes;
		finish_round(all, half, now_ns);
		begin_round(all, half, now_ns);
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
static void acknowledged(struct open *one, int side, const struct captured_packet *packet, int64_t now_ns)
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

static void handshake(struct open *one, int side, const struct captured_packet *packet, int64_t now_ns)
{
	uint8_t control = packet->tcp_flags & (SYN | ACK);

	if (control == SYN && !side) {
		one->syn_again |= one->syn_ns != 0;
		one->syn_ns = now_ns;
		one->syn_seq = packet->tcp_seq;
	} else if (control == (SYN | ACK) && side) {
		one->syn_again |= one->has_answer;
		one->has_answer = true;
	} else if (!side && one->syn_ns && !one->handshake_ns) {
		one->handshake_ns = one->syn_again || !(packet->tcp_flags & ACK) ? -1 : now_ns - one->syn_ns;
	}
}

static void segment(struct connections *all, struct open *one, int side, const struct captured_packet *packet,
		    uint64_t packets)
{
	struct half *half = &one->half[side];
	int64_t now_ns = all->now_ns;
	bool has_scale = one->half[0].has_syn && one->half[1].has_syn;

	handshake(one, side, packet, now_ns);
	if (packet->tcp_flags & SYN) {
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
	if (packet->tcp_flags & ACK && !(packet->tcp_flags & RST))
		acknowledged(one, !side, packet, now_ns);
	if (packet->flags & CAPTURED_HAS_TIMESTAMPS) {
		if (packet->tcp_flags & ACK && !(packet->payload_bytes && half->is_waiting))
			echoed(&one->half[!side], now_ns, packet->ts_echo);
		remember_stamp(half, now_ns, packet->ts_value, rtt(one));
	}
	if (packet->payload_bytes && !(packet->tcp_flags & (SYN | RST)))
		data(all, one, side, packet, packets);
	if (packet->tcp_flags & FIN && half->begun && packet->tcp_seq + packet->payload_bytes == half->next)
		half->next++;
	half->has_end |= (packet->tcp_flags & (FIN | RST)) != 0;
	if (packet->tcp_flags & RST || (one->half[0].has_end && one->half[1].has_end))
		one->list = ENDED;
}

/* ---- rows ---- */

static void write_row(struct connections *all, struct open *one, bool is_forgotten)
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
		finish_round(all, half, half->last_ns);
	if (one->handshake_ns > 0)
		row.handshake_ns = (uint64_t)one->handshake_ns;
	if (out->least_ns && back->least_ns) {
		row.rtt_least_ns = (uint64_t)rtt_ns;
		row.rtt_samples = least(out->median.count, back->median.count);
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
	all->settings.write(all->settings.to, &row);
}

static void end(struct connections *all, uint32_t number, bool is_forgotten)
{
	struct open *one = &all->pool[number];
	uint32_t *link = &all->slots[slot(all, one)];

	write_row(all, one, is_forgotten);
	while (*link != number)
		link = &all->pool[*link].chain;
	*link = one->chain;
	unlink_age(all, number);
	one->chain = all->free;
	all->free = number;
	all->count--;
}

static uint32_t oldest(const struct connections *all)
{
	uint32_t result = NONE, head;

	for (int list = 0; list < LISTS; list++) {
		head = all->list[list].oldest;
		if (head != NONE && (result == NONE || all->pool[head].last_ns < all->pool[result].last_ns))
			result = head;
	}
	return result;
}

static void expire(struct connections *all)
{
	for (int list = 0; list < LISTS; list++)
		while (all->list[list].oldest != NONE &&
		       all->pool[all->list[list].oldest].last_ns < all->now_ns - timeout_ns[list])
			end(all, all->list[list].oldest, false);
}

static int side_of(const struct open *one, const uint64_t src[2], const uint64_t dst[2],
		   const struct captured_packet *packet)
{
	if (one->protocol != packet->ip_protocol)
		return -1;
	for (int side = 0; side < 2; side++)
		if (one->port[side] == packet->src_port && one->port[!side] == packet->dst_port &&
		    !memcmp(one->addr[side], src, sizeof(one->addr[0])) &&
		    !memcmp(one->addr[!side], dst, sizeof(one->addr[0])))
			return side;
	return -1;
}

/* A SYN of other numbers, after data or an end, is of a new connection between the same ports. */
static bool is_over(const struct open *one, int side, const struct captured_packet *packet)
{
	if (one->protocol != PROTOCOL_TCP || (packet->tcp_flags & (SYN | ACK)) != SYN)
		return false;
	return one->list == ENDED || side || packet->tcp_seq != one->syn_seq;
}

static int begin(struct connections *all, const uint64_t src[2], const uint64_t dst[2],
		 const struct captured_packet *packet, uint32_t *number)
{
	int initiator = (packet->tcp_flags & (SYN | ACK)) == (SYN | ACK); /* the one who gets a SYN-ACK */
	struct open *one;

	if (all->count >= all->settings.most_open)
		end(all, oldest(all), true);
	if (all->free == NONE && grow(all))
		return -ENOMEM;
	*number = all->free;
	one = &all->pool[*number];
	all->free = one->chain;
	memset(one, 0, sizeof(*one));
	memcpy(one->addr[initiator], src, sizeof(one->addr[0]));
	memcpy(one->addr[!initiator], dst, sizeof(one->addr[0]));
	one->port[initiator] = packet->src_port;
	one->port[!initiator] = packet->dst_port;
	one->protocol = packet->ip_protocol;
	one->start_ns = all->now_ns;
	one->half[0].way = one->half[1].way = WAYS;
	one->chain = all->slots[slot(all, one)];
	all->slots[slot(all, one)] = *number;
	link_age(all, *number, one->protocol == PROTOCOL_TCP ? OPEN : DATAGRAMS);
	all->count++;
	return initiator;
}

int connections_add(struct connections *all, const struct captured_packet *packet)
{
	const uint64_t src[2] = {packet->src_addr_hi, packet->src_addr_lo};
	const uint64_t dst[2] = {packet->dst_addr_hi, packet->dst_addr_lo};
	bool has_tcp = packet->flags & CAPTURED_HAS_TCP;
	uint32_t headers = packet->ip_bytes - least(packet->payload_bytes, packet->ip_bytes), room;
	uint64_t packets = 1, ip_bytes = packet->ip_bytes;
	uint8_t way = packet->packet_type < WAYS ? packet->packet_type : WAYS;
	uint32_t number;
	struct open *one;
	struct half *half;
	enum lists list;
	int side = -1;

	if ((int64_t)packet->real_ns > all->now_ns)
		all->now_ns = (int64_t)packet->real_ns;
	expire(all);
	if (has_tcp && packet->ip_bytes > all->settings.mtu_bytes && headers < all->settings.mtu_bytes / 2) {
		room = all->settings.mtu_bytes - headers;
		packets = (packet->payload_bytes + room - 1) / room;
		ip_bytes += (packets - 1) * headers;
	}
	all->link_bytes[way] += on_link(ip_bytes, packets);
	number = all->slots[slot_of(all, src, packet->src_port, dst, packet->dst_port, packet->ip_protocol)];
	for (; number != NONE; number = all->pool[number].chain) {
		side = side_of(&all->pool[number], src, dst, packet);
		if (side >= 0)
			break;
	}
	if (side >= 0 && has_tcp && is_over(&all->pool[number], side, packet)) {
		end(all, number, false);
		side = -1;
	}
	if (side < 0)
		side = begin(all, src, dst, packet, &number);
	if (side < 0)
		return side;
	one = &all->pool[number];
	one->last_ns = all->now_ns;
	half = &one->half[side];
	half->packets += packets;
	half->ip_bytes += ip_bytes;
	half->payload_bytes += packet->payload_bytes;
	half->way = way;
	list = one->list;
	if (has_tcp) {
		struct captured_packet whole = *packet;

		whole.ip_bytes = (uint32_t)ip_bytes;
		segment(all, one, side, &whole, packets);
	}
	/* segment() says in `list` where it belongs now. */
	number = (uint32_t)(one - all->pool);
	if (one->list != list) {
		enum lists next = one->list;

		one->list = list;
		unlink_age(all, number);
		link_age(all, number, next);
	} else {
		unlink_age(all, number);
		link_age(all, number, list);
	}
	return 0;
}

struct connections *connections_new(const struct connections_settings *settings)
{
	struct connections *all = calloc(1, sizeof(*all));

	if (!all)
		return NULL;
	all->settings = *settings;
	all->free = NONE;
	all->now_ns = INT64_MIN / 2;
	for (int list = 0; list < LISTS; list++)
		all->list[list].oldest = all->list[list].newest = NONE;
	if (grow(all)) {
		connections_free(all);
		return NULL;
	}
	return all;
}

void connections_end(struct connections *all)
{
	uint32_t number;

	while ((number = oldest(all)) != NONE)
		end(all, number, false);
}

void connections_free(struct connections *all)
{
	free(all->pool);
	free(all->slots);
	free(all);
}
