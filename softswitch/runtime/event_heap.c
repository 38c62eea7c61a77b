/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * A binary heap of packets by (time, sequence number), with lanes in front: see struct event_heap. A push cannot fail:
 * the heap of departures has room for all that can be in transmission at once, the other heaps for every packet of the
 * pool.
 */
#include "event_heap.h"
#include "freestanding.h"

static bool before(const struct heap_entry *a, const struct heap_entry *b)
{
	return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->seq < b->seq;
}

static void sift_up(struct event_heap *heap, uint32_t at, struct heap_entry entry)
{
	while (at) {
		uint32_t parent = (at - 1) / 2;

		if (!before(&entry, &heap->entries[parent]))
			break;
		heap->entries[at] = heap->entries[parent];
		at = parent;
	}
	heap->entries[at] = entry;
}

static void sift_down(struct event_heap *heap, struct heap_entry entry)
{
	uint32_t at = 0;

	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child >= heap->count)
			break;
		if (child + 1 < heap->count && before(&heap->entries[child + 1], &heap->entries[child]))
			child++;
		if (!before(&heap->entries[child], &entry))
			break;
		heap->entries[at] = heap->entries[child];
		at = child;
	}
	heap->entries[at] = entry;
}

static struct heap_entry entry_of(struct core_packet *packet)
{
	return (struct heap_entry){packet->time_ns, packet->seq, packet};
}

void heap_push(struct event_heap *heap, struct core_packet *packet)
{
	sift_up(heap, heap->count++, entry_of(packet));
}

struct core_packet *heap_pop(struct event_heap *heap)
{
	struct core_packet *packet = heap->entries[0].packet;

	if (--heap->count)
		sift_down(heap, heap->entries[heap->count]);
	return packet;
}

void heap_push_lane(struct event_heap *heap, struct lane *lane, struct core_packet *packet)
{
	packet->next = NULL;
	packet->in_lane = !lane->head || packet->time_ns >= lane->tail->time_ns;
	if (likely(packet->in_lane && lane->head)) {
		lane->tail->next = packet;
		lane->tail = packet;
		return;
	}
	if (packet->in_lane)
		lane->head = lane->tail = packet;
	heap_push(heap, packet);
}

/* lane: the lane of the first packet of the heap. */
struct core_packet *heap_pop_lane(struct event_heap *heap, struct lane *lane)
{
	struct core_packet *packet = heap->entries[0].packet;

	if (!packet->in_lane)
		return heap_pop(heap);
	lane->head = packet->next;
	if (lane->head)
		sift_down(heap, entry_of(lane->head));
	else
		heap_pop(heap);
	return packet;
}
