/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * A queue: its packets, their order, its length, limits and counters. Others call its functions and touch no field, so
 * that another discipline, a second queue of a port and a scheduler between queues change no caller. What each packet
 * needs is inline.
 *
 * First in, first out, as a chain through the packets. The head stays queued while the link sends it.
 */
#ifndef SOFTSWITCH_QUEUE_H
#define SOFTSWITCH_QUEUE_H

#include "freestanding.h"
#include "packet_pool.h"

struct queue_limits {
	uint64_t packets; /* 0: without bound; also below */
	uint64_t bytes;
};

struct queue_counters {
	uint64_t drops; /* packets that a limit refused */
	uint64_t max_packets;
};

struct queue {
	struct core_packet *head; /* FIFO: the packet that came first */
	struct core_packet *tail;
	uint32_t packets;
	uint64_t bytes;
	struct queue_limits limits;
	struct queue_counters counters;
	uint32_t *packets_register; /* the program's copies of packets and bytes */
	uint32_t *bytes_register;
	uint32_t no_register; /* stands for both where the program has none */
};

/* Registers of the program that shall hold the queue's length from now on; NULL: it has none. */
void queue_init(struct queue *queue, uint32_t *packets_register, uint32_t *bytes_register);

void queue_set_limits(struct queue *queue, struct queue_limits limits);
struct queue_limits queue_get_limits(const struct queue *queue);
struct queue_counters queue_get_counters(const struct queue *queue);

/* After each change, so that the program never reads another length. More than 4 GiB do not fit into 32 bits. */
static inline void queue_show_length(struct queue *queue)
{
	*queue->packets_register = queue->packets;
	*queue->bytes_register = queue->bytes < UINT32_MAX ? (uint32_t)queue->bytes : UINT32_MAX;
}

static inline bool queue_fits(const struct queue *queue, const struct core_packet *packet)
{
	if (queue->limits.packets && queue->packets >= queue->limits.packets)
		return false;
	return !queue->limits.bytes || queue->bytes + packet->queue_bytes <= queue->limits.bytes;
}

/* False, counted: a limit refuses the packet. */
static inline bool queue_enqueue(struct queue *queue, struct core_packet *packet)
{
	if (unlikely(!queue_fits(queue, packet))) {
		queue->counters.drops++;
		return false;
	}
	packet->next = NULL;
	if (queue->head)
		queue->tail->next = packet;
	else
		queue->head = packet;
	queue->tail = packet;
	queue->packets++;
	queue->bytes += packet->queue_bytes;
	if (queue->packets > queue->counters.max_packets)
		queue->counters.max_packets = queue->packets;
	queue_show_length(queue);
	return true;
}

/* The packet that leaves next; NULL: the queue is empty. */
static inline struct core_packet *queue_peek(const struct queue *queue)
{
	return queue->head;
}

/* The packet that queue_peek returned. */
static inline struct core_packet *queue_dequeue(struct queue *queue)
{
	struct core_packet *packet = queue->head;

	queue->head = packet->next;
	queue->packets--;
	queue->bytes -= packet->queue_bytes;
	queue_show_length(queue);
	return packet;
}

static inline uint32_t queue_packets(const struct queue *queue)
{
	return queue->packets;
}

static inline uint64_t queue_bytes(const struct queue *queue)
{
	return queue->bytes;
}

#endif
