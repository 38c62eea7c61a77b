/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Priority queues of events: heaps of packets, with FIFO lanes in front.
 */
#ifndef SOFTSWITCH_EVENT_HEAP_H
#define SOFTSWITCH_EVENT_HEAP_H

#include "packet_pool.h"

/* Events in the order of (time_ns, seq). A lane is a chain of packets in order; only its first packet is in the heap. A
 * packet that is pushed in order joins its lane. A packet that is pushed out of order enters the heap at once. If all
 * packets come in order, the heap has one entry for each busy lane.
 */
struct event_heap {
	struct heap_entry {
		uint64_t time_ns;
		uint64_t seq;
		struct core_packet *packet;
	} *entries;
	uint32_t count;
};

struct lane {
	struct core_packet *head;
	struct core_packet *tail;
};

/* The keys are packet->time_ns and packet->seq. */
void heap_push(struct event_heap *heap, struct core_packet *packet);
struct core_packet *heap_pop(struct event_heap *heap);
void heap_push_lane(struct event_heap *heap, struct lane *lane, struct core_packet *packet);
struct core_packet *heap_pop_lane(struct event_heap *heap, struct lane *lane);

static inline uint64_t heap_time_ns(const struct event_heap *heap)
{
	return heap->count ? heap->entries[0].time_ns : CORE_NEVER_NS;
}

#endif
