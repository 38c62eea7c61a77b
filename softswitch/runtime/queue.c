/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The functions of a queue that are not on the packet path; queue.h has the rest.
 */
#include "queue.h"

void queue_init(struct queue *queue)
{
	*queue = (struct queue){0};
	queue_set_registers(queue, NULL, 0, 0);
}

void queue_set_registers(struct queue *queue, const struct pipeline_queue_registers *registers, uint32_t port,
			 uint32_t qid)
{
	bool exists = registers && qid < registers->queues;
	uint32_t at = exists ? port * registers->queues + qid : 0;

	queue->packets_register =
		exists && registers->packets ? &registers->packets[at] : &queue->no_register;
	queue->bytes_register = exists && registers->bytes ? &registers->bytes[at] : &queue->no_register;
}

void queue_set_limits(struct queue *queue, struct queue_limits limits)
{
	queue->limits = limits;
}

struct queue_limits queue_get_limits(const struct queue *queue)
{
	return queue->limits;
}

struct queue_counters queue_get_counters(const struct queue *queue)
{
	return queue->counters;
}
