/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * A fixed number of packets, each with its headers and its frame buffer. The free list is last in, first out: a reused
 * packet is still in the cache, and the frame buffer of a packet that was never needed is never touched.
 */
#include "packet_pool.h"
#include "core_state.h"
#include "freestanding.h"

enum {
	CACHE_LINE_BYTES = 64,
};

static size_t round_up(size_t bytes, size_t to)
{
	return (bytes + to - 1) / to * to;
}

static size_t phv_offset(void)
{
	return round_up(sizeof(struct core_packet), CACHE_LINE_BYTES);
}

static size_t buffer_offset(void)
{
	return phv_offset() + round_up(pipeline_phv_bytes, CACHE_LINE_BYTES) + pipeline_headroom_bytes;
}

/* An odd number of cache lines: an even stride would map the same field of all packets to only a part of the cache sets.
 */
static size_t packet_stride(const struct core_config *config)
{
	size_t bytes = buffer_offset() + config->frame_bytes;

	bytes = round_up(bytes, CACHE_LINE_BYTES);
	return bytes / CACHE_LINE_BYTES % 2 ? bytes : bytes + CACHE_LINE_BYTES;
}

size_t packet_pool_bytes(const struct core_config *config)
{
	return packet_stride(config) * config->packets;
}

void packet_pool_init(struct core *core, uint8_t *memory)
{
	size_t stride = packet_stride(&core->config);
	uint32_t index = core->config.packets;

	core->free_packets = NULL;
	while (index--) {
		uint8_t *at = memory + index * stride;
		struct core_packet *packet = (struct core_packet *)at;

		memset(packet, 0, sizeof(*packet));
		packet->packet.phv = at + phv_offset();
		packet->buffer = at + buffer_offset();
		packet->number = index;
		packet->next = core->free_packets;
		core->free_packets = packet;
	}
}

struct core_packet *packet_pool_get(struct core *core)
{
	struct core_packet *packet = core->free_packets;

	if (unlikely(!packet)) {
		core->stats.pool_exhausted++;
		return NULL;
	}
	core->free_packets = packet->next;
	if (++core->packets_used > core->stats.packets_used_max)
		core->stats.packets_used_max = core->packets_used;
	packet->next = NULL;
	packet->packet.frame = packet->buffer;
	packet->packet.payload_offset = 0;
	memset(&packet->packet.std, 0, sizeof(packet->packet.std));
	packet->packet.std.truncate_bytes = UINT32_MAX;
	packet->flow_delay_ns = 0;
	packet->generation = 0;
	packet->passes = 0;
	packet->body = NULL;
	packet->back_to_back = false;
	return packet;
}

void packet_pool_put(struct core *core, struct core_packet *packet)
{
	if (packet->body)
		core->config.drop_body(packet->body);
	packet->next = core->free_packets;
	core->free_packets = packet;
	core->packets_used--;
	if (unlikely(packet->watched))
		watch_ended(core, packet);
}
