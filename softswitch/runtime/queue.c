/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The functions of a queue that are not on the packet path; queue.h has the rest.
 */
#include "queue.h"

void queue_init(struct queue *queue, uint32_t *packets_register, uint32_t *bytes_register)
{
	*queue = (struct queue){0};
	queue->packets_register = packets_register ? packets_register : &queue->no_register;
	queue->bytes_register = bytes_register ? bytes_register : &queue->no_register;
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
