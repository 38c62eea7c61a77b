/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * See scheduler.h: which queue takes a packet, which packet leaves next, and the requests `queue ...`.
 *
 * strict, drr, fq: the packet on the link stays the oldest of its queue until its last bit has left. bmv2: the oldest packet
 * of each queue is in the heap of departures.
 */
#include "scheduler.h"
#include "control.h"
#include "core_state.h"
#include "freestanding.h"
#include "request.h"

enum {
	DEFAULT_QUEUES = 8,
	DEFAULT_QUANTUM_BYTES = 1514,
	MIN_QUANTUM_BYTES = 64, /* so that a turn comes soon, whatever the packet's length */
	MAX_QUANTUM_BYTES = 1000000,
	MAX_RATE_PPS = 1000000000,
	SEQ_BITS = 58, /* of core_packet.seq, below the priority */
};

static const char *const kinds[SCHEDULER_KINDS] = {"fifo", "strict", "drr", "fq", "bmv2"};

bool scheduler_classify(const struct scheduler *scheduler, struct intrinsic *std)
{
	uint16_t chosen = pipeline_sets_qid ? std->qid : std->priority;
	bool exists = chosen < scheduler->count;

	std->qid = exists ? chosen : (uint16_t)(scheduler->count - 1);
	return exists || scheduler->kind != SCHEDULER_BMV2;
}

/* Fixes the packet's departure, as simple_switch does. Of departures at the same ns the highest queue's is the first, as
 * if one of its threads served all ports.
 */
static void pace(struct core *core, struct scheduled_queue *queue, struct core_packet *packet)
{
	uint64_t next_ns = queue->last_ns + (queue->rate_pps ? 1000000000 / queue->rate_pps : 0);
	uint64_t order = CORE_PORT_QUEUES - 1 - packet->packet.std.qid;

	queue->last_ns = next_ns > packet->enqueue_ns ? next_ns : packet->enqueue_ns;
	packet->time_ns = queue->last_ns;
	packet->seq = order << SEQ_BITS | core->next_seq++;
	if (queue_peek(&queue->queue) == packet)
		heap_push(&core->departures, packet);
}

static void append(struct scheduler *scheduler, unsigned int list, uint16_t qid)
{
	struct queue_list *to = &scheduler->lists[list];

	if (to->first == CORE_NO_QUEUE)
		to->first = qid;
	else
		scheduler->queues[to->last].next = qid;
	to->last = qid;
	scheduler->queues[qid].next = CORE_NO_QUEUE;
	scheduler->queues[qid].listed = true;
}

static void remove_first(struct scheduler *scheduler, unsigned int list)
{
	struct scheduled_queue *queue = &scheduler->queues[scheduler->lists[list].first];

	scheduler->lists[list].first = queue->next;
	queue->listed = false;
}

/* RFC 8290, section 4.2. An empty queue leaves its list when its turn comes. */
static struct core_packet *next_of_lists(struct scheduler *scheduler)
{
	for (;;) {
		unsigned int list = scheduler->lists[FQ_NEW].first != CORE_NO_QUEUE ? FQ_NEW : FQ_OLD;
		uint16_t qid = scheduler->lists[list].first;
		struct scheduled_queue *queue;

		if (qid == CORE_NO_QUEUE)
			return NULL;
		queue = &scheduler->queues[qid];
		if (queue->deficit_bytes > 0 && queue_peek(&queue->queue))
			return queue_peek(&queue->queue);
		remove_first(scheduler, list);
		if (queue->deficit_bytes <= 0)
			queue->deficit_bytes += queue->quantum_bytes;
		else if (list == FQ_OLD)
			continue;
		append(scheduler, FQ_OLD, qid);
	}
}

void scheduler_queued(struct core *core, struct scheduler *scheduler, struct core_packet *packet)
{
	uint16_t qid = packet->packet.std.qid;
	struct scheduled_queue *queue = &scheduler->queues[qid];

	queue_count_in(&core->ports[packet->port].queue, packet);
	if (scheduler->kind == SCHEDULER_FQ) {
		if (!queue->listed) {
			queue->deficit_bytes = queue->quantum_bytes;
			append(scheduler, FQ_NEW, qid);
		}
		return;
	}
	scheduler->busy |= 1u << qid;
	if (scheduler->kind == SCHEDULER_BMV2)
		pace(core, queue, packet);
}

uint32_t scheduler_remove(struct core *core, struct scheduler *scheduler, const struct core_packet *packet)
{
	uint16_t qid = packet->packet.std.qid;
	struct scheduled_queue *queue = &scheduler->queues[qid];

	queue_dequeue(&queue->queue);
	queue_count_out(&core->ports[packet->port].queue, packet);
	if (scheduler->kind == SCHEDULER_FQ)
		return queue_packets(&queue->queue);
	if (!queue_peek(&queue->queue)) {
		scheduler->busy &= ~(1u << qid);
		queue->deficit_bytes = 0;
	} else if (scheduler->kind == SCHEDULER_BMV2) {
		heap_push(&core->departures, queue_peek(&queue->queue));
	}
	return queue_packets(&queue->queue);
}

/* The first queue with packets after this one, going round. */
static uint32_t next_busy(uint32_t busy, uint32_t number)
{
	uint32_t later = busy & (uint32_t)(UINT64_MAX << (number + 1));

	return (uint32_t)__builtin_ctz(later ? later : busy);
}

/* A queue's turn begins with one more quantum, and lasts while the deficit covers its next packet. */
static struct core_packet *next_in_turn(struct scheduler *scheduler)
{
	for (;;) {
		struct scheduled_queue *queue = &scheduler->queues[scheduler->turn];
		struct core_packet *head = queue_peek(&queue->queue);

		if (head && (int64_t)head->queue_bytes <= queue->deficit_bytes) {
			queue->deficit_bytes -= head->queue_bytes;
			return head;
		}
		scheduler->turn = next_busy(scheduler->busy, scheduler->turn);
		queue = &scheduler->queues[scheduler->turn];
		queue->deficit_bytes += queue->quantum_bytes;
	}
}

void scheduler_sent(struct scheduler *scheduler, const struct core_packet *packet)
{
	if (scheduler->kind == SCHEDULER_FQ)
		scheduler->queues[packet->packet.std.qid].deficit_bytes -= packet->queue_bytes;
}

struct core_packet *scheduler_next(struct scheduler *scheduler)
{
	if (scheduler->kind == SCHEDULER_FQ)
		return next_of_lists(scheduler);
	if (!scheduler->busy || scheduler->kind == SCHEDULER_BMV2)
		return NULL;
	if (scheduler->kind == SCHEDULER_DRR)
		return next_in_turn(scheduler);
	return queue_peek(&scheduler->queues[31 - __builtin_clz(scheduler->busy)].queue);
}

static size_t set_scheduler(struct core *core, struct port *port, struct words *words, struct text *text)
{
	struct setting queues = {"queues", 1, CORE_PORT_QUEUES, DEFAULT_QUEUES};
	struct pipeline_queue_registers registers = pipeline_queue_registers(core->pipeline);
	uint32_t number = (uint32_t)(port - core->ports), place = port->scheduler, kind = 0;
	struct scheduler *scheduler;
	size_t error;

	words_next(words);
	while (kind < SCHEDULER_KINDS && !words_is(words, kinds[kind]))
		kind++;
	if (kind == SCHEDULER_KINDS)
		return request_refuse_word(text, "scheduler", words, "fifo, strict, drr, fq or bmv2");
	if (kind == SCHEDULER_FIFO)
		queues.max = queues.value = 1;
	if (kind == SCHEDULER_FQ)
		queues.max = queues.value = CORE_FQ_QUEUES;
	error = request_settings(text, words, &queues, 1, NULL);
	if (error)
		return error;
	if (queue_packets(&port->queue))
		return request_refuse(text,
				      "the port's queue is not empty: set its scheduler before its traffic");
	for (uint32_t free = CORE_SCHEDULED_PORTS; free && !port->scheduler; free--)
		if (core->schedulers[free].kind == SCHEDULER_FIFO)
			place = free;
	if (kind != SCHEDULER_FIFO && !place)
		return request_refuse(text, "8 ports have a scheduler already: set one of them to fifo");
	scheduler = &core->schedulers[place];
	memset(scheduler, 0, sizeof(*scheduler)); /* too large for the kernel's stack */
	scheduler->kind = kind;
	scheduler->count = (uint32_t)(queues.value ? queues.value : DEFAULT_QUEUES);
	for (unsigned int list = 0; list < FQ_LISTS; list++)
		scheduler->lists[list].first = CORE_NO_QUEUE;
	port->scheduler = kind == SCHEDULER_FIFO ? 0 : (uint8_t)place;
	queue_set_registers(&port->queue, !port->scheduler || registers.queues == 1 ? &registers : NULL,
			    number, 0);
	for (uint32_t qid = 0; qid < scheduler->count; qid++) {
		struct scheduled_queue *queue = &scheduler->queues[qid];

		queue_init(&queue->queue);
		queue_set_registers(&queue->queue, registers.queues > 1 ? &registers : NULL, number, qid);
		queue->quantum_bytes = DEFAULT_QUANTUM_BYTES;
		queue->last_ns = core->now_ns; /* simple_switch counts from there, too */
	}
	return request_accept(text);
}

_Static_assert(CORE_SCHEDULED_PORTS == 8, "the message of set_scheduler");

/* Returns 0, or the length of an error reply. */
static size_t set_queue(struct scheduled_queue *queue, struct words words, struct text *text)
{
	struct queue_limits limits = queue_get_limits(&queue->queue);
	struct setting settings[] = {
		{"limit_packets", 0, REQUEST_MAX_LIMIT, limits.packets},
		{"limit_bytes", 0, REQUEST_MAX_LIMIT, limits.bytes},
		{"quantum", MIN_QUANTUM_BYTES, MAX_QUANTUM_BYTES, (uint64_t)queue->quantum_bytes},
		{"rate", 0, MAX_RATE_PPS, queue->rate_pps},
	};
	size_t error = request_settings(text, &words, settings, sizeof(settings) / sizeof(settings[0]), NULL);

	if (error)
		return error;
	queue_set_limits(&queue->queue, (struct queue_limits){settings[0].value, settings[1].value});
	queue->quantum_bytes = settings[2].value ? (int64_t)settings[2].value : DEFAULT_QUANTUM_BYTES;
	queue->rate_pps = settings[3].value;
	return 0;
}

static size_t set_queues(struct scheduler *scheduler, struct words *words, struct text *text)
{
	uint64_t first = 0, last = scheduler->count - 1;

	words_next(words);
	if (!words_is(words, "all")) {
		size_t error = request_number(text, words, "queue", 0, last, false, &first);

		if (error)
			return error;
		last = first;
	}
	for (uint64_t qid = first; qid <= last; qid++) {
		size_t error = set_queue(&scheduler->queues[qid], *words, text);

		if (error)
			return error;
	}
	return request_accept(text);
}

static void show_queue(const struct scheduled_queue *queue, uint32_t qid, struct text *text)
{
	struct queue_limits limits = queue_get_limits(&queue->queue);
	struct queue_counters counters = queue_get_counters(&queue->queue);
	const struct {
		const char *name;
		uint64_t value;
	} lines[] = {
		{"limit_packets", limits.packets},
		{"limit_bytes", limits.bytes},
		{"quantum", (uint64_t)queue->quantum_bytes},
		{"rate", queue->rate_pps},
		{"drops", counters.drops},
		{"packets", queue_packets(&queue->queue)},
		{"bytes", queue_bytes(&queue->queue)},
		{"max_packets", counters.max_packets},
	};

	for (size_t index = 0; index < sizeof(lines) / sizeof(lines[0]); index++)
		text_format(text, "queue.%u.%s %llu\n", qid, lines[index].name,
			    (unsigned long long)lines[index].value);
}

size_t scheduler_control(struct core *core, struct words *words, struct text *text)
{
	static const char requests[] =
		"queue scheduler PORT KIND [queues N], queue set PORT QUEUE ..., queue show PORT";
	bool choose = words_next(words) && words_is(words, "scheduler");
	bool set = words_is(words, "set");
	struct scheduler *scheduler;
	struct port *port;
	uint64_t number;

	if (!choose && !set && !words_is(words, "show"))
		return request_refuse_word(text, "unknown request queue", words, requests);
	port = control_read_port(core, words, &number);
	if (!port)
		return request_refuse_word(text, "no such port", words,
					   "one that the switch was started with");
	if (port->scheduler == OUTER_QUEUE)
		return request_refuse(text,
				      "the port's queue is outside of the switch: tc shows and sets it");
	if (choose)
		return set_scheduler(core, port, words, text);
	scheduler = &core->schedulers[port->scheduler];
	if (set && !port->scheduler)
		return request_refuse(text, "the port has one queue: port set, or queue scheduler PORT KIND");
	if (set)
		return set_queues(scheduler, words, text);
	if (words_next(words))
		return request_refuse_word(text, "unexpected", words, requests);
	text_format(text, "ok\nscheduler %s\nqueues %u\n", kinds[scheduler->kind],
		    port->scheduler ? scheduler->count : 1);
	for (uint32_t qid = 0; port->scheduler && qid < scheduler->count; qid++)
		if (scheduler->kind != SCHEDULER_FQ ||
		    queue_get_counters(&scheduler->queues[qid].queue).max_packets)
			show_queue(&scheduler->queues[qid], qid, text);
	return text_end(text);
}
