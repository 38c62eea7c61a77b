/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Which event is next: heaps of packets, with lanes in front of them.
 */
#ifndef SOFTSWITCH_EVENT_HEAP_H
#define SOFTSWITCH_EVENT_HEAP_H

#include "packet_pool.h"

/* Events in the order of (time_ns, seq). Packets of one lane that come in order wait in a chain, of which
 * only the first is in the heap; others enter the heap at once. So the heap is as small as the number of busy
 * lanes.
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
