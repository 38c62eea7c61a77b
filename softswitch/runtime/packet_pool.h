/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Packets and their pool. A packet is in the free list, the arrivals, a port's queue or the outputs, or the caller has
 * taken it (core_take_output). `next` chains the free list, each queue, and each lane of arrivals and outputs
 * (event_heap.h).
 */
#ifndef SOFTSWITCH_PACKET_POOL_H
#define SOFTSWITCH_PACKET_POOL_H

#include "core.h"

struct core_packet {
	struct packet packet;
	struct core_packet *next;
	uint8_t *
		buffer; /* the received frame begins here, pipeline_headroom_bytes behind the packet's state */
	uint32_t head_bytes; /* of the received frame that are in the buffer */
	uint32_t number;     /* of this packet in the pool; never changes */
	void *body;	     /* holds the other bytes; NULL: there are none */
	uint64_t time_ns;    /* of its next event: arrival, departure, or output */
	uint64_t seq;	     /* order of events at the same ns */
	uint64_t enqueue_ns;
	uint64_t departure_ns;
	uint64_t flow_delay_ns; /* its flow's delay when the frame was received */
	uint32_t queue_bytes;	/* as counted in the queue and on the link */
	uint16_t port;		/* of its arrival, queue or output */
	uint8_t generation;	/* 0: received; a clone has one more than its original */
	uint8_t passes;		/* times that it was resubmitted or recirculated */
	uint16_t group;		/* of a clone: the multicast group of its session; 0: none */
	bool in_lane;
	bool back_to_back;
	uint8_t watched; /* enum watch_state; not 0: packet_pool_put reports its fate */
};

size_t packet_pool_bytes(const struct core_config *config);
void packet_pool_init(struct core *core, uint8_t *memory);
/* The number of the frame's bytes in the buffer; the others are in its body, if it has one. */
static inline uint32_t packet_resident_bytes(const struct core_packet *packet)
{
	const uint8_t *end = packet->buffer + packet->head_bytes;
	uint32_t bytes = (uint32_t)(end - packet->packet.frame);

	return bytes < packet->packet.frame_bytes ? bytes : packet->packet.frame_bytes;
}

struct core_packet *packet_pool_get(struct core *core); /* NULL, counted: the pool is empty */
void packet_pool_put(struct core *core, struct core_packet *packet);

#endif
