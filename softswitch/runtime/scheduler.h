/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Several queues at one port, and the order in which they leave it. A port without a scheduler has one FIFO queue, no
 * struct scheduler, and pays for one comparison. With a scheduler, the port's own queue object only counts: its length,
 * limits and counters are those of all queues of the port together.
 *
 *   strict  the highest queue that has packets, whenever the link becomes free
 *   drr     deficit round robin (Shreedhar and Varghese 1995)
 *   fq      deficit round robin in which a queue that was empty is served first (RFC 8290); a packet that egress drops
 *           does not count
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
	CORE_FQ_QUEUES = 1024,
	CORE_NO_QUEUE = 0xffff,
};

enum scheduler_kind {
	SCHEDULER_FIFO, /* this struct scheduler is unused */
	SCHEDULER_STRICT,
	SCHEDULER_DRR,
	SCHEDULER_FQ,
	SCHEDULER_BMV2,
	SCHEDULER_KINDS,
};

/* A queue with its settings for each kind of scheduler. */
struct scheduled_queue {
	struct queue queue;
	int64_t quantum_bytes; /* drr, fq: what the queue may send when its turn begins */
	int64_t deficit_bytes; /* the rest of it; fq: below 0 after a packet that was longer */
	uint64_t rate_pps;     /* bmv2; 0: unlimited */
	uint64_t last_ns;      /* bmv2: departure of the packet that was queued last */
	uint16_t next;	       /* fq: in its list; CORE_NO_QUEUE: the last one */
	bool listed;
};

/* fq: queues that have packets, or had some when they were served last. New ones come first. */
enum { FQ_NEW, FQ_OLD, FQ_LISTS };

struct queue_list {
	uint16_t first; /* CORE_NO_QUEUE: the list is empty */
	uint16_t last;
};

struct scheduler {
	enum scheduler_kind kind;
	uint32_t count; /* of queues */
	uint32_t busy;	/* strict, drr: bit N: queue N has packets */
	uint32_t turn;	/* drr: number of the queue whose turn it is */
	struct queue_list lists[FQ_LISTS];
	struct scheduled_queue queues[CORE_FQ_QUEUES];
};

/* Sets std->qid: the number that the program chose, or its priority; the highest queue if no queue has the number. False:
 * bmv2 drops such a packet.
 */
bool scheduler_classify(const struct scheduler *scheduler, struct intrinsic *std);

/* Called after a packet was queued. */
void scheduler_queued(struct core *core, struct scheduler *scheduler, struct core_packet *packet);

/* Removes the departing packet, which is the oldest of its queue. Returns the packets that its queue has left. */
uint32_t scheduler_remove(struct core *core, struct scheduler *scheduler, const struct core_packet *packet);

/* Called before scheduler_next, after a packet that egress did not drop took the link. */
void scheduler_sent(struct scheduler *scheduler, const struct core_packet *packet);

/* Chooses the packet that takes the free link. NULL: there is none, or the scheduler has no link. */
struct core_packet *scheduler_next(struct scheduler *scheduler);

/* Answers "queue scheduler PORT KIND [queues N]", "queue set PORT QUEUE ..." and "queue show PORT". */
size_t scheduler_control(struct core *core, struct words *words, struct text *text);

#endif
