/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * A queue: packets in order, length, limits and counters. Callers use functions only and touch no field. Functions of the
 * packet path are inline. A port with several queues has a scheduler (scheduler.h).
 *
 * FIFO: a chain through the packets. The head remains in the queue during its transmission.
 */
#ifndef SOFTSWITCH_QUEUE_H
#define SOFTSWITCH_QUEUE_H

#include "freestanding.h"
#include "packet_pool.h"

struct queue_limits {
	uint64_t packets; /* 0: unlimited; bytes likewise */
	uint64_t bytes;
};

struct queue_counters {
	uint64_t drops; /* packets refused by a limit */
	uint64_t max_packets;
};

struct queue {
	struct core_packet *head; /* the oldest packet */
	struct core_packet *tail;
	uint32_t packets;
	uint64_t bytes;
	struct queue_limits limits;
	struct queue_counters counters;
	uint32_t *packets_register; /* where the program reads the length */
	uint32_t *bytes_register;
	uint32_t no_register; /* written instead of a register that the program does not have */
};

/* An empty queue without limits. */
void queue_init(struct queue *queue);
/* From now on the queue keeps the registers' cells of queue `qid` of the port equal to its length. NULL: none. */
void queue_set_registers(struct queue *queue, const struct pipeline_queue_registers *registers, uint32_t port,
			 uint32_t qid);

void queue_set_limits(struct queue *queue, struct queue_limits limits);
struct queue_limits queue_get_limits(const struct queue *queue);
struct queue_counters queue_get_counters(const struct queue *queue);

/* Called after each change of the length. The register of bytes has 32 bits and saturates. */
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

static inline void queue_count_drop(struct queue *queue)
{
	queue->counters.drops++;
}

/* The packet counts in the queue's length from now on. */
static inline void queue_count_in(struct queue *queue, const struct core_packet *packet)
{
	queue->packets++;
	queue->bytes += packet->queue_bytes;
	if (queue->packets > queue->counters.max_packets)
		queue->counters.max_packets = queue->packets;
	queue_show_length(queue);
}

static inline void queue_count_out(struct queue *queue, const struct core_packet *packet)
{
	queue->packets--;
	queue->bytes -= packet->queue_bytes;
	queue_show_length(queue);
}

/* False: a limit refused the packet; the drop is counted. */
static inline bool queue_enqueue(struct queue *queue, struct core_packet *packet)
{
	if (unlikely(!queue_fits(queue, packet))) {
		queue_count_drop(queue);
		return false;
	}
	packet->next = NULL;
	if (queue->head)
		queue->tail->next = packet;
	else
		queue->head = packet;
	queue->tail = packet;
	queue_count_in(queue, packet);
	return true;
}

/* The next packet to leave; NULL: the queue is empty. */
static inline struct core_packet *queue_peek(const struct queue *queue)
{
	return queue->head;
}

/* Removes and returns the packet of queue_peek. */
static inline struct core_packet *queue_dequeue(struct queue *queue)
{
	struct core_packet *packet = queue->head;

	queue->head = packet->next;
	queue_count_out(queue, packet);
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
