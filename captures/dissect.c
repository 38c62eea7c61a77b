// SPDX-License-Identifier: MIT
// A cursor goes from header to header. Each step checks that the capture has the header's bytes, and never reads beyond.
#include "dissect.h"

#include <string.h>

enum {
	LINK_NULL = 0,
	LINK_ETHERNET = 1,
	LINK_RAW_OLD = 12, /* the number of raw IP on most systems before it got one in files */
	LINK_RAW_OPENBSD = 14,
	LINK_RAW = 101,
	LINK_LOOP = 108,
	LINK_COOKED = 113,
	LINK_IPV4 = 228,
	LINK_IPV6 = 229,
	LINK_COOKED_2 = 276,

	TYPE_IPV4 = 0x0800,
	TYPE_IPV6 = 0x86dd,
	TYPE_MPLS = 0x8847,
	TYPE_MPLS_UPSTREAM = 0x8848,
	TYPE_PPPOE = 0x8864,
	TYPE_LEAST = 0x0600, /* below, the field is the length of an LLC frame */
	SNAP_BYTES = 8,
	MOST_VLAN_TAGS = 8,
	VLAN_ID_MASK = 0x0fff,

	PROTOCOL_IPV4 = 4,
	PROTOCOL_TCP = 6,
	PROTOCOL_UDP = 17,
	PROTOCOL_IPV6 = 41,
	PROTOCOL_GRE = 47,
	PROTOCOL_ESP = 50,
	PROTOCOL_AH = 51,
	PROTOCOL_L2TP = 115,
	HOP_BY_HOP = 0,
	ROUTING = 43,
	FRAGMENT = 44,
	NO_NEXT_HEADER = 59,
	DESTINATION = 60,
	MOBILITY = 135,
	HIP = 139,
	SHIM6 = 140,
	MOST_EXTENSIONS = 16,
	MORE_FRAGMENTS = 0x2000,
	OFFSET_MASK = 0x1fff,
	DIGESTED_BYTES = 16, /* of the payload of UDP */

	OPTION_END = 0,
	OPTION_NOTHING = 1,
	OPTION_MSS = 2,
	OPTION_SCALE = 3,
	OPTION_SACK = 5,
	OPTION_TIMESTAMPS = 8,
};

static const uint64_t MAPPED = UINT64_C(0xffff00000000); /* ::ffff:0.0.0.0, the lower half */

/* What is left of a frame: `captured` bytes from `at` on, of `length`. */
struct cursor {
	const uint8_t *at;
	uint32_t captured, length;
	struct captured_packet *packet;
};

static uint16_t be16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static uint32_t be32(const uint8_t *at)
{
	return (uint32_t)be16(at) << 16 | be16(at + 2);
}

static uint64_t be64(const uint8_t *at)
{
	return (uint64_t)be32(at) << 32 | be32(at + 4);
}

/* Whether the capture has so many next bytes; if not, says why. */
static bool has(const struct cursor *cursor, uint32_t bytes)
{
	if (cursor->captured >= bytes)
		return true;
	cursor->packet->flags |= cursor->length < bytes ? CAPTURED_IS_MALFORMED : CAPTURED_IS_SHORT;
	return false;
}

static void skip(struct cursor *cursor, uint32_t bytes)
{
	cursor->at += bytes;
	cursor->captured -= bytes;
	cursor->length -= bytes;
}

static bool malformed(const struct cursor *cursor)
{
	cursor->packet->flags |= CAPTURED_IS_MALFORMED;
	return false;
}

static bool is_vlan(uint16_t type)
{
	return type == 0x8100 || type == 0x88a8 || type == 0x9100 || type == 0x9200;
}

/* Goes through VLAN tags and SNAP to the network layer, of EtherType `type`. */
static bool ether_type(struct cursor *cursor, uint16_t type)
{
	uint16_t tag;

	for (unsigned int tags = 0; is_vlan(type); tags++) {
		if (tags == MOST_VLAN_TAGS)
			return malformed(cursor);
		if (!has(cursor, 4))
			return false;
		tag = be16(cursor->at) & VLAN_ID_MASK;
		cursor->packet->vlan_id = tags ? cursor->packet->vlan_id : tag;
		type = be16(cursor->at + 2);
		skip(cursor, 4);
	}
	if (type < TYPE_LEAST && cursor->captured >= SNAP_BYTES &&
	    !memcmp(cursor->at, "\xaa\xaa\x03\0\0\0", 6)) {
		type = be16(cursor->at + 6);
		skip(cursor, SNAP_BYTES);
	}
	cursor->packet->ether_type = type;
	if (type == TYPE_MPLS || type == TYPE_MPLS_UPSTREAM)
		cursor->packet->tunnel = TUNNEL_MPLS;
	if (type == TYPE_PPPOE)
		cursor->packet->tunnel = TUNNEL_PPPOE;
	return type == TYPE_IPV4 || type == TYPE_IPV6;
}

/* Goes to the IP header, of any version. Returns whether there is one. */
static bool link_layer(struct cursor *cursor, uint16_t link_type)
{
	static const struct {
		uint16_t link_type, bytes, type_at;
	} with_type[] = {{LINK_ETHERNET, 14, 12}, {LINK_COOKED, 16, 14}, {LINK_COOKED_2, 20, 0}};
	uint16_t type;

	for (size_t row = 0; row < sizeof(with_type) / sizeof(*with_type); row++) {
		if (link_type != with_type[row].link_type)
			continue;
		if (!has(cursor, with_type[row].bytes))
			return false;
		if (link_type == LINK_ETHERNET) {
			cursor->packet->dst_mac = be64(cursor->at) >> 16;
			cursor->packet->src_mac = be64(cursor->at + 4) & 0xffffffffffff;
		}
		if (link_type == LINK_COOKED)
			cursor->packet->packet_type = cursor->at[1];
		if (link_type == LINK_COOKED_2)
			cursor->packet->packet_type = cursor->at[10];
		type = be16(cursor->at + with_type[row].type_at);
		skip(cursor, with_type[row].bytes);
		return ether_type(cursor, type);
	}
	if (link_type == LINK_NULL || link_type == LINK_LOOP) {
		/* The address family, of either byte order, has another value for IPv6 on each system. */
		if (!has(cursor, 4))
			return false;
		skip(cursor, 4);
	}
	return dissect_knows(link_type) && has(cursor, 1) && (*cursor->at >> 4 == 4 || *cursor->at >> 4 == 6);
}

bool dissect_knows(uint16_t link_type)
{
	static const uint16_t known[] = {LINK_NULL, LINK_ETHERNET, LINK_RAW_OLD, LINK_RAW_OPENBSD,
					 LINK_RAW,  LINK_LOOP,	   LINK_COOKED,	 LINK_IPV4,
					 LINK_IPV6, LINK_COOKED_2};

	for (size_t row = 0; row < sizeof(known) / sizeof(*known); row++)
		if (link_type == known[row])
			return true;
	return false;
}

/* Cuts the cursor to the packet's own bytes: a short Ethernet frame has padding. `bytes` is the length that the IP header
 * states. The kernel leaves it 0 in a segment of more than 64 KiB, which its NIC would have split. A capture that was
 * shortened afterwards may state less for the frame.
 */
static void ip_length(struct cursor *cursor, uint32_t bytes, bool is_stated)
{
	if (!is_stated)
		bytes = cursor->length;
	cursor->packet->ip_bytes = bytes;
	cursor->packet->flags |= CAPTURED_HAS_IP;
	cursor->captured = cursor->captured < bytes ? cursor->captured : bytes;
	cursor->length = bytes;
}

static bool ipv4(struct cursor *cursor)
{
	struct captured_packet *packet = cursor->packet;
	const uint8_t *at = cursor->at;
	uint32_t header_bytes;

	if (!has(cursor, 20))
		return false;
	header_bytes = (*at & 15) * 4u;
	if (header_bytes < 20)
		return malformed(cursor);
	packet->tos = at[1];
	packet->ip_id = be16(at + 4);
	packet->fragment = be16(at + 6) & (MORE_FRAGMENTS | OFFSET_MASK);
	packet->ttl = at[8];
	packet->ip_protocol = at[9];
	packet->src_addr_lo = MAPPED | be32(at + 12);
	packet->dst_addr_lo = MAPPED | be32(at + 16);
	ip_length(cursor, be16(at + 2), be16(at + 2));
	if (cursor->length < header_bytes)
		return malformed(cursor);
	packet->payload_bytes = cursor->length - header_bytes;
	if (!has(cursor, header_bytes))
		return false;
	skip(cursor, header_bytes);
	return true;
}

static bool is_extension(uint8_t protocol)
{
	return protocol == HOP_BY_HOP || protocol == ROUTING || protocol == FRAGMENT ||
	       protocol == DESTINATION || protocol == MOBILITY || protocol == HIP || protocol == SHIM6;
}

static bool ipv6(struct cursor *cursor)
{
	struct captured_packet *packet = cursor->packet;
	const uint8_t *at = cursor->at;
	uint32_t bytes;

	if (!has(cursor, 40))
		return false;
	packet->tos = (uint8_t)(be16(at) >> 4);
	packet->ip_protocol = at[6];
	packet->ttl = at[7];
	packet->src_addr_hi = be64(at + 8);
	packet->src_addr_lo = be64(at + 16);
	packet->dst_addr_hi = be64(at + 24);
	packet->dst_addr_lo = be64(at + 32);
	/* A length of 0 stands for a jumbogram, too (RFC 2675), whose length is that of the frame. */
	ip_length(cursor, 40u + be16(at + 4), be16(at + 4) || packet->ip_protocol == NO_NEXT_HEADER);
	skip(cursor, 40);
	packet->payload_bytes = cursor->length;
	for (unsigned int count = 0; is_extension(packet->ip_protocol); count++) {
		if (count == MOST_EXTENSIONS)
			return malformed(cursor);
		if (packet->fragment & OFFSET_MASK)
			return true; /* what follows is the middle of a header */
		if (!has(cursor, 8))
			return false;
		bytes = packet->ip_protocol == FRAGMENT ? 8 : (cursor->at[1] + 1u) * 8;
		if (packet->ip_protocol == FRAGMENT) {
			packet->fragment = (uint16_t)(be16(cursor->at + 2) >> 3);
			packet->fragment |= be16(cursor->at + 2) & 1 ? MORE_FRAGMENTS : 0;
			packet->ip_id = be32(cursor->at + 4);
		}
		packet->ip_protocol = *cursor->at;
		if (!has(cursor, bytes))
			return false;
		skip(cursor, bytes);
		packet->payload_bytes = cursor->length;
	}
	return true;
}

static void digest(struct captured_packet *packet, const uint8_t *at, const uint8_t *end)
{
	packet->options_digest = 0x811c9dc5;
	for (; at < end; at++)
		packet->options_digest = (packet->options_digest ^ *at) * 0x01000193;
	packet->flags |= CAPTURED_HAS_OPTIONS;
}

static void tcp_options(struct captured_packet *packet, const uint8_t *at, const uint8_t *end)
{
	uint8_t kind, bytes;

	digest(packet, at, end);
	while (at < end && *at != OPTION_END) {
		kind = *at;
		if (kind == OPTION_NOTHING) {
			at++;
			continue;
		}
		bytes = end - at < 2 ? 0 : at[1];
		if (bytes < 2 || bytes > end - at)
			return;
		if (kind == OPTION_MSS && bytes == 4)
			packet->mss_bytes = be16(at + 2);
		if (kind == OPTION_SCALE && bytes == 3)
			packet->window_scale = at[2];
		if (kind == OPTION_SACK && bytes >= 10) {
			packet->sack_left = be32(at + 2);
			packet->sack_right = be32(at + 6);
		}
		if (kind == OPTION_TIMESTAMPS && bytes == 10) {
			packet->ts_value = be32(at + 2);
			packet->ts_echo = be32(at + 6);
			packet->flags |= CAPTURED_HAS_TIMESTAMPS;
		}
		at += bytes;
	}
}

static bool tcp(struct cursor *cursor)
{
	struct captured_packet *packet = cursor->packet;
	const uint8_t *at = cursor->at;
	uint32_t header_bytes;

	if (cursor->captured >= 4) {
		packet->src_port = be16(at);
		packet->dst_port = be16(at + 2);
		packet->flags |= CAPTURED_HAS_PORTS;
	}
	if (!has(cursor, 20))
		return false;
	packet->tcp_seq = be32(at + 4);
	packet->tcp_ack = be32(at + 8);
	header_bytes = (at[12] >> 4) * 4u;
	packet->tcp_flags = at[13];
	packet->tcp_window = be16(at + 14);
	packet->checksum = be16(at + 16);
	packet->flags |= CAPTURED_HAS_TCP;
	if (header_bytes < 20 || header_bytes > cursor->length) {
		/* A first fragment may end within the options. */
		return header_bytes >= 20 && packet->fragment ? false : malformed(cursor);
	}
	packet->payload_bytes = cursor->length - header_bytes;
	if (cursor->captured < header_bytes)
		return false; /* a snap length down to the TCP header is usual */
	tcp_options(packet, at + 20, at + header_bytes);
	skip(cursor, header_bytes);
	return true;
}

static bool udp(struct cursor *cursor)
{
	static const struct {
		uint16_t port;
		uint8_t tunnel;
	} tunnels[] = {{4789, TUNNEL_VXLAN},
		       {8472, TUNNEL_VXLAN},
		       {6081, TUNNEL_GENEVE},
		       {1701, TUNNEL_L2TP},
		       {2152, TUNNEL_GTP}};
	struct captured_packet *packet = cursor->packet;
	const uint8_t *at = cursor->at;
	uint32_t bytes;

	if (cursor->captured >= 4) {
		packet->src_port = be16(at);
		packet->dst_port = be16(at + 2);
		packet->flags |= CAPTURED_HAS_PORTS;
	}
	for (size_t row = 0; row < sizeof(tunnels) / sizeof(*tunnels); row++)
		if (packet->flags & CAPTURED_HAS_PORTS && packet->dst_port == tunnels[row].port)
			packet->tunnel = tunnels[row].tunnel;
	packet->payload_bytes = cursor->length < 8 ? 0 : cursor->length - 8;
	if (!has(cursor, 8))
		return false;
	packet->checksum = be16(at + 6);
	skip(cursor, 8);
	bytes = packet->payload_bytes < DIGESTED_BYTES ? packet->payload_bytes : DIGESTED_BYTES;
	if (cursor->captured >= bytes)
		digest(packet, cursor->at, cursor->at + bytes);
	return true;
}

static void transport_tunnel(struct captured_packet *packet)
{
	static const struct {
		uint8_t protocol, tunnel;
	} tunnels[] = {{PROTOCOL_IPV4, TUNNEL_IP_IN_IP},
		       {PROTOCOL_IPV6, TUNNEL_IP_IN_IP},
		       {PROTOCOL_GRE, TUNNEL_GRE},
		       {PROTOCOL_ESP, TUNNEL_ESP},
		       {PROTOCOL_L2TP, TUNNEL_L2TP}};

	for (size_t row = 0; row < sizeof(tunnels) / sizeof(*tunnels); row++)
		if (packet->ip_protocol == tunnels[row].protocol)
			packet->tunnel = tunnels[row].tunnel;
}

/* Goes behind an authentication header, whose length is in words of 4 bytes, less 2. */
static bool authentication(struct cursor *cursor)
{
	uint32_t bytes;

	if (!has(cursor, 12))
		return false;
	bytes = (cursor->at[1] + 2u) * 4;
	cursor->packet->ip_protocol = *cursor->at;
	if (!has(cursor, bytes))
		return false;
	skip(cursor, bytes);
	cursor->packet->payload_bytes = cursor->length;
	return true;
}

const uint8_t *dissect(const struct frame *frame, struct captured_packet *packet, uint32_t *bytes)
{
	struct cursor cursor = {frame->bytes, frame->captured_bytes, frame->frame_bytes, packet};
	bool has_payload = false;

	*packet = (struct captured_packet){
		.real_ns = (uint64_t)frame->real_ns,
		.frame_bytes = frame->frame_bytes,
		.captured_bytes = frame->captured_bytes,
		.interface = frame->interface,
		.link_type = frame->link_type,
		.window_scale = CAPTURED_NO_SCALE,
	};
	*bytes = 0;
	cursor.length = cursor.length < cursor.captured ? cursor.captured : cursor.length;
	if (!link_layer(&cursor, frame->link_type) || !has(&cursor, 1))
		return NULL;
	if (*cursor.at >> 4 != 4 && *cursor.at >> 4 != 6) {
		malformed(&cursor);
		return NULL;
	}
	if (!(*cursor.at >> 4 == 4 ? ipv4(&cursor) : ipv6(&cursor)))
		return NULL;
	if (packet->fragment & OFFSET_MASK)
		return NULL;
	if (packet->ip_protocol == PROTOCOL_AH && !authentication(&cursor))
		return NULL;
	transport_tunnel(packet);
	if (packet->ip_protocol == PROTOCOL_TCP)
		has_payload = tcp(&cursor);
	if (packet->ip_protocol == PROTOCOL_UDP)
		has_payload = udp(&cursor);
	*bytes = has_payload ? cursor.captured : 0;
	return has_payload ? cursor.at : NULL;
}
