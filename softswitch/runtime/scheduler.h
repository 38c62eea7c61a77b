/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Several queues at one port, and the order in which they leave it. A port without a scheduler has one FIFO queue, no
 * struct scheduler, and pays for one comparison. With a scheduler, the port's own queue object only counts: its length,
 * limits and counters are those of all queues of the port together.
 *
 *   strict  the highest queue that has packets, whenever the link becomes free
 *   drr     deficit round robin (Shreedhar and Varghese 1995)
 *   bmv2    as simple_switch: each queue has a rate in packets/s and no link; a packet's departure is fixed on arrival
 */
#ifndef SOFTSWITCH_SCHEDULER_H
#define SOFTSWITCH_SCHEDULER_H

#include "packet_pool.h"
#include "queue.h"
#include "text.h"

enum {
	CORE_SCHEDULED_PORTS = 8,
	CORE_PORT_QUEUES = 32, /* v1model's priority has 3 bits; changed v1models have 5 */
};

enum scheduler_kind {
	SCHEDULER_FIFO, /* this struct scheduler is unused */
	SCHEDULER_STRICT,
	SCHEDULER_DRR,
	SCHEDULER_BMV2,
	SCHEDULER_KINDS,
};

/* A queue with its settings for each kind of scheduler. */
struct scheduled_queue {
	struct queue queue;
	uint64_t quantum_bytes; /* drr: what the queue may send when its turn begins */
	uint64_t deficit_bytes; /* drr: the rest of it */
	uint64_t rate_pps;	/* bmv2; 0: unlimited */
	uint64_t last_ns;	/* bmv2: departure of the packet that was queued last */
};

struct scheduler {
	enum scheduler_kind kind;
	uint32_t count; /* of queues */
	uint32_t busy;	/* bit N: queue N has packets */
	uint32_t turn;	/* drr: number of the queue whose turn it is */
	struct scheduled_queue queues[CORE_PORT_QUEUES];
};

/* The number of the queue for a packet of this priority: the highest queue if no queue has the number. False: bmv2 drops
 * such a packet.
 */
bool scheduler_classify(const struct scheduler *scheduler, uint8_t priority, uint8_t *qid);

/* Called after a packet was queued. */
void scheduler_queued(struct core *core, struct scheduler *scheduler, struct core_packet *packet);

/* Removes the departing packet, which is the oldest of its queue. Returns the packets that its queue has left. */
uint32_t scheduler_remove(struct core *core, struct scheduler *scheduler, const struct core_packet *packet);

/* Chooses the packet that takes the free link. NULL: there is none, or the scheduler has no link. */
struct core_packet *scheduler_next(struct scheduler *scheduler);

/* Answers "queue scheduler PORT KIND [queues N]", "queue set PORT QUEUE ..." and "queue show PORT". */
size_t scheduler_control(struct core *core, struct words *words, struct text *text);

#endif
