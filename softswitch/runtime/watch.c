/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * See watch.h. A packet's postcard is filled as the packet goes on, and sent when its fate is known.
 */
#include "watch.h"
#include "control.h"
#include "core_state.h"
#include "freestanding.h"
#include "ip_place.h"
#include "request.h"

enum {
	TCP_BYTES = 20,
	ECN_CE = 3,
	IPV4_AT = ETHERNET_BYTES,
	UDP_AT = IPV4_AT + IPV4_BYTES,
	TTL = 64,
	DO_NOT_FRAGMENT = 0x40,
	MOST_16_BITS = 65535,
};

/* The settings of "watch set". */
enum {
	SENDER,
	COLLECTOR,
	SWITCH_ID,
	SWITCH_MAC,
	COLLECTOR_MAC,
	SWITCH_ADDR,
	COLLECTOR_ADDR,
	SRC_PORT,
	DST_PORT,
};

static struct watched_packet *record_of(const struct core *core, const struct core_packet *packet)
{
	return &core->watch.packets[packet->number];
}

static void count(struct watch_count *count, uint32_t bytes)
{
	count->packets++;
	count->bytes += bytes;
}

static uint32_t be32(const uint8_t *at)
{
	return be16(at) << 16 | be16(at + 2);
}

static void read_tcp_or_udp(struct postcard *card, const uint8_t *at, uint32_t left)
{
	bool tcp = card->ip_protocol == PROTOCOL_TCP && left >= TCP_BYTES;

	if (!tcp && !(card->ip_protocol == PROTOCOL_UDP && left >= UDP_BYTES))
		return;
	card->flags |= POSTCARD_HAS_PORTS;
	card->src_port = (uint16_t)be16(at);
	card->dst_port = (uint16_t)be16(at + 2);
	if (!tcp)
		return;
	card->flags |= POSTCARD_HAS_TCP;
	card->tcp_seq = be32(at + 4);
	card->tcp_ack = be32(at + 8);
	card->tcp_flags = at[13];
}

/* The ECN field, or -1 if there is no whole IP header where it is expected. */
static int ecn_of(const uint8_t *frame, uint32_t bytes)
{
	uint32_t offset, type = ip_place(frame, bytes, &offset);

	if (type == TYPE_IPV4 && bytes >= offset + IPV4_BYTES)
		return frame[offset + 1] & ECN_CE;
	if (type == TYPE_IPV6 && bytes >= offset + IPV6_BYTES)
		return frame[offset + 1] >> 4 & ECN_CE;
	return -1;
}

/* Ports are read only where their place is certain, as in p4src/shared/parser.p4. */
static void read_headers(struct postcard *card, const uint8_t *frame, uint32_t bytes)
{
	uint32_t offset, type = ip_place(frame, bytes, &offset);
	const uint8_t *ip = frame + offset, *at;
	int ecn = ecn_of(frame, bytes);

	if (ecn < 0)
		return;
	card->flags |= POSTCARD_HAS_IP | (ecn ? POSTCARD_ECT : 0);
	if (type == TYPE_IPV6) {
		card->ip_protocol = ip[6];
		at = ip + 8;
		card->src_addr = take_be(&at, 16);
		card->dst_addr = take_be(&at, 16);
		read_tcp_or_udp(card, ip + IPV6_BYTES, bytes - offset - IPV6_BYTES);
		return;
	}
	card->ip_protocol = ip[9];
	card->src_addr = (uint128_t)0xffff << 32 | be32(ip + 12);
	card->dst_addr = (uint128_t)0xffff << 32 | be32(ip + 16);
	if ((ip[0] & 15) == 5 && !(be16(ip + 6) & 0x1fff))
		read_tcp_or_udp(card, ip + IPV4_BYTES, bytes - offset - IPV4_BYTES);
}

/* What is known where the packet meets the queue, or would have. */
static void meet_queue(struct core *core, struct postcard *card, const struct core_packet *packet,
		       uint64_t now_ns)
{
	const struct queue *queue = &core->ports[core->watch.port].queue;
	uint64_t depth_bytes = queue_bytes(queue);

	card->enqueue_switch_ns = now_ns & CORE_TIME_MASK;
	card->depth_packets = queue_packets(queue);
	card->depth_bytes = depth_bytes < UINT32_MAX ? (uint32_t)depth_bytes : UINT32_MAX;
	card->packet_bytes = (uint16_t)packet->queue_bytes;
}

static void forget_addresses(struct postcard *card)
{
	card->flags = card->ip_protocol = card->tcp_flags = 0;
	card->src_addr = card->dst_addr = 0;
	card->src_port = card->dst_port = 0;
	card->tcp_seq = card->tcp_ack = 0;
}

static void send_card(struct core *core, struct postcard *card)
{
	struct watch *watch = &core->watch;
	uint32_t *seq = &watch->next_seq[!(card->flags & POSTCARD_AT_INGRESS)];
	struct core_packet *packet = packet_pool_get(core);

	card->card_seq = (*seq)++;
	if (!packet)
		return; /* counted: pool_exhausted */
	memcpy(packet->packet.frame, watch->headers, WATCH_HEADER_BYTES);
	postcard_encode(packet->packet.frame + WATCH_HEADER_BYTES, card);
	packet->packet.frame_bytes = packet->head_bytes = WATCH_HEADER_BYTES + POSTCARD_BYTES;
	packet->queue_bytes = packet->packet.frame_bytes;
	packet->port = watch->collector;
	core->stats.clones++;
	watch->postcards++;
	traffic_output(core, packet, core->now_ns);
}

void watch_arrived(struct core *core, struct core_packet *packet)
{
	struct watched_packet *record = record_of(core, packet);
	struct postcard *card = &record->card;

	*card = (struct postcard){
		.version = POSTCARD_VERSION,
		.switch_id = core->watch.switch_id,
		.ingress_port = packet->port,
		.egress_port = core->watch.port,
	};
	read_headers(card, packet->packet.frame, packet_resident_bytes(packet));
	meet_queue(core, card, packet, core->now_ns);
	record->came_with_ce = ecn_of(packet->packet.frame, packet_resident_bytes(packet)) == ECN_CE;
	packet->watched = packet->port == core->watch.sender ? WATCH_SENT : WATCH_OTHER;
	if (packet->watched == WATCH_SENT)
		count(&core->watch.arrivals, packet->queue_bytes);
}

/* A drop at departure if the packet was in the queue, else at arrival. */
static void report_drop(struct core *core, const struct core_packet *packet, struct postcard *card)
{
	bool left = packet->watched == WATCH_LEFT || packet->watched == WATCH_AROUND;

	card->flags |= POSTCARD_DROPPED | (left ? 0 : POSTCARD_AT_INGRESS);
	if (packet->watched == WATCH_QUEUED)
		card->queue_id = packet->packet.std.qid; /* it refuses the packet */
	count(left ? &core->watch.departure_drops : &core->watch.arrival_drops, card->packet_bytes);
	send_card(core, card);
}

/* A recirculated packet comes to the queue again: its earlier stay took no link time, like that of a dropped packet. */
static void report_stay(struct core *core, const struct core_packet *packet)
{
	struct postcard card = record_of(core, packet)->card;

	forget_addresses(&card);
	report_drop(core, packet, &card);
	record_of(core, packet)->card.sojourn_ns = 0;
}

void watch_queued(struct core *core, uint16_t port, struct core_packet *packet, uint64_t now_ns)
{
	if (port != core->watch.port)
		return;
	if (packet->watched == WATCH_AROUND)
		report_stay(core, packet);
	if (packet->watched != WATCH_SENT)
		count(&core->watch.arrivals, packet->queue_bytes);
	packet->watched = WATCH_QUEUED;
	meet_queue(core, &record_of(core, packet)->card, packet, now_ns);
}

void watch_left(struct core *core, struct core_packet *packet, uint64_t now_ns)
{
	struct postcard *card = &record_of(core, packet)->card;

	if (packet->watched != WATCH_QUEUED)
		return;
	packet->watched = WATCH_LEFT;
	card->queue_id = packet->packet.std.qid;
	card->sojourn_ns = (now_ns - card->enqueue_switch_ns) & CORE_TIME_MASK;
}

void watch_departed(struct core *core, struct core_packet *packet)
{
	struct watched_packet *record = record_of(core, packet);

	if (packet->watched != WATCH_LEFT) {
		watch_ended(core, packet);
		return;
	}
	packet->watched = WATCH_NONE;
	if (!record->came_with_ce && ecn_of(packet->packet.frame, packet_resident_bytes(packet)) == ECN_CE) {
		record->card.flags |= POSTCARD_CE_MARKED;
		count(&core->watch.marks, record->card.packet_bytes);
	}
	send_card(core, &record->card);
}

void watch_recirculated(struct core_packet *packet)
{
	if (packet->watched == WATCH_LEFT)
		packet->watched = WATCH_AROUND;
}

void watch_ended(struct core *core, struct core_packet *packet)
{
	if (packet->watched != WATCH_OTHER)
		report_drop(core, packet, &record_of(core, packet)->card);
	packet->watched = WATCH_NONE;
}

void watch_copied(struct core *core, struct core_packet *original, struct core_packet *copy, uint16_t port)
{
	if (original->watched != WATCH_SENT || port != core->watch.port) {
		watch_cloned(core, original, copy);
		return;
	}
	*record_of(core, copy) = *record_of(core, original);
	copy->watched = WATCH_SENT;
	original->watched = WATCH_OTHER;
}

void watch_cloned(struct core *core, const struct core_packet *original, struct core_packet *clone)
{
	struct watched_packet *record = record_of(core, clone);

	*record = *record_of(core, original);
	forget_addresses(&record->card);
	clone->watched = WATCH_OTHER;
}

/* The headers are the same before every postcard. The UDP checksum is 0, "none" (RFC 768). */
static void make_headers(uint8_t *at, const struct setting *settings)
{
	uint8_t *ip = at + IPV4_AT, *udp = at + UDP_AT;
	uint32_t sum = 0;

	memset(at, 0, WATCH_HEADER_BYTES);
	put_be(&at, settings[COLLECTOR_MAC].value, 6);
	put_be(&at, settings[SWITCH_MAC].value, 6);
	put_be(&at, TYPE_IPV4, 2);
	ip[0] = 0x45;
	ip[3] = IPV4_BYTES + UDP_BYTES + POSTCARD_BYTES;
	ip[6] = DO_NOT_FRAGMENT;
	ip[8] = TTL;
	ip[9] = PROTOCOL_UDP;
	at = ip + 12;
	put_be(&at, settings[SWITCH_ADDR].value, 4);
	put_be(&at, settings[COLLECTOR_ADDR].value, 4);
	for (at = ip; at < udp; at += 2)
		sum += be16(at);
	sum = (sum & 0xffff) + (sum >> 16);
	at = ip + 10;
	put_be(&at, (uint16_t)~(sum + (sum >> 16)), 2);
	put_be(&udp, settings[SRC_PORT].value, 2);
	put_be(&udp, settings[DST_PORT].value, 2);
	put_be(&udp, UDP_BYTES + POSTCARD_BYTES, 2);
}
_Static_assert(IPV4_BYTES + UDP_BYTES + POSTCARD_BYTES < 256, "make_headers writes one byte of the length");

static size_t watch_set(struct core *core, struct words *words, struct text *text)
{
	struct setting settings[] = {
		[SENDER] = {"sender", 0, PIPELINE_DROP_PORT - 1, PIPELINE_DROP_PORT},
		[COLLECTOR] = {"collector", 0, PIPELINE_DROP_PORT - 1, PIPELINE_DROP_PORT},
		[SWITCH_ID] = {"switch_id", 0, MOST_16_BITS, 0},
		[SWITCH_MAC] = {"switch_mac", 0, (1ull << 48) - 1, 0},
		[COLLECTOR_MAC] = {"collector_mac", 0, (1ull << 48) - 1, 0},
		[SWITCH_ADDR] = {"switch_addr", 0, UINT32_MAX, 0},
		[COLLECTOR_ADDR] = {"collector_addr", 0, UINT32_MAX, 0},
		[SRC_PORT] = {"src_port", 0, MOST_16_BITS, 0},
		[DST_PORT] = {"dst_port", 0, MOST_16_BITS, 0},
	};
	struct watch *watch = &core->watch;
	uint64_t port;
	size_t error;

	if (!control_read_port(core, words, &port))
		return request_refuse_word(text, "no such port", words,
					   "one that the switch was started with");
	error = request_settings(text, words, settings, sizeof(settings) / sizeof(settings[0]), NULL);
	if (error)
		return error;
	if (!core->ports[settings[SENDER].value].attached || !core->ports[settings[COLLECTOR].value].attached)
		return request_refuse(text, "sender and collector: ports that the switch was started with");
	if (settings[COLLECTOR].value == port || settings[COLLECTOR].value == settings[SENDER].value)
		return request_refuse(text, "the collector needs a port of its own");
	if (core->config.frame_bytes < WATCH_HEADER_BYTES + POSTCARD_BYTES)
		return request_refuse(text, "a postcard is longer than the switch's longest frame");
	*watch = (struct watch){
		.port = (uint16_t)port,
		.sender = (uint16_t)settings[SENDER].value,
		.collector = (uint16_t)settings[COLLECTOR].value,
		.switch_id = (uint16_t)settings[SWITCH_ID].value,
		.packets = watch->packets,
	};
	make_headers(watch->headers, settings);
	core->watching = true;
	link_find_lookahead(core);
	return request_accept(text);
}

static void put_count(struct text *text, const char *name, struct watch_count count)
{
	text_format(text, "%s %llu %llu\n", name, (unsigned long long)count.packets,
		    (unsigned long long)count.bytes);
}

size_t watch_control(struct core *core, struct words *words, struct text *text)
{
	static const char requests[] =
		"watch set PORT sender PORT collector PORT ..., watch show, watch clear";
	const struct watch *watch = &core->watch;
	bool show = words_next(words) && words_is(words, "show");

	if (words_is(words, "set"))
		return watch_set(core, words, text);
	if ((!show && !words_is(words, "clear")) || words_next(words))
		return request_refuse_word(text, "unknown request watch", words, requests);
	if (!core->watching)
		return request_refuse(text, "no port is watched: watch set PORT ...");
	if (!show) {
		core->watching = false;
		link_find_lookahead(core);
		return request_accept(text);
	}
	text_put(text, "ok\n");
	text_put_pair(text, "port", watch->port);
	text_put_pair(text, "sender", watch->sender);
	text_put_pair(text, "collector", watch->collector);
	text_put_pair(text, "switch_id", watch->switch_id);
	text_put_pair(text, "postcards", watch->postcards);
	put_count(text, "arrivals", watch->arrivals);
	put_count(text, "arrival_drops", watch->arrival_drops);
	put_count(text, "departure_drops", watch->departure_drops);
	put_count(text, "marks", watch->marks);
	return text_end(text);
}
