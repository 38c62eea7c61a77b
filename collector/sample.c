// SPDX-License-Identifier: MIT
// Sample postcards: correct in every field, and distinguished by their number.
#include "sample.h"

#include <stddef.h>

#include "layout.h"

/* ::ffff:10.77.0.x */
static uint128_t mapped(unsigned int host)
{
	return (uint128_t)0xffff << 32 | 10u << 24 | 77u << 16 | host;
}

void sample_encode(uint8_t *buffer, uint32_t card_seq, uint64_t enqueue_ns)
{
	const struct postcard card = {
		.version = POSTCARD_VERSION,
		.flags = POSTCARD_HAS_IP | POSTCARD_HAS_PORTS | POSTCARD_HAS_TCP,
		.switch_id = 1,
		.ingress_port = 1,
		.egress_port = 2,
		.sojourn_ns = 1000000,
		.depth_packets = 80,
		.depth_bytes = 80 * 1514,
		.threshold = 163,
		.packet_bytes = 1514,
		.ip_protocol = 6,
		.tcp_flags = 0x10,
		.src_addr = mapped(1),
		.dst_addr = mapped(2),
		.src_port = 30000,
		.dst_port = 5201,
		.tcp_ack = 1,
	};

	postcard_encode(buffer, &card);
	sample_renumber(buffer, card_seq, enqueue_ns);
}

void sample_renumber(uint8_t *buffer, uint32_t card_seq, uint64_t enqueue_ns)
{
	uint8_t *at = buffer + offsetof(struct postcard_layout, card_seq);

	put_be(&at, card_seq, 4);
	at = buffer + offsetof(struct postcard_layout, enqueue_switch_ns);
	put_be(&at, enqueue_ns, 6);
	at = buffer + offsetof(struct postcard_layout, tcp_seq);
	put_be(&at, card_seq * 1448u, 4);
}
