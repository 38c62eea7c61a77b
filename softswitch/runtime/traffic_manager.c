/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Ports and their links. The head of a port's queue is in transmission and counts as queued until its last bit has left.
 * Egress runs at that moment, so egress and arrivals see the same length. A port with several queues transmits the packet
 * that its scheduler chooses when the link becomes free.
 */
#include "traffic_manager.h"
#include "core_state.h"
#include "freestanding.h"

/* Transmits permille / 1000 of the packet on a port that may have dynamics. */
static __attribute__((__noinline__)) bool serve_dynamic(const struct core *core, const struct port *port,
							const struct core_packet *packet, uint64_t permille,
							uint64_t now_ns, struct link_clock *finish)
{
	const struct rate_schedule *schedule = &core->dynamics[port->dynamics].schedule;

	if (schedule->started)
		return rate_serve(schedule, port, packet, permille, now_ns, finish);
	return link_serve(&port->link, port->rate_bps, packet->enqueue_ns,
			  link_wire_bits(packet->queue_bytes) * permille / 1000, finish);
}

/* Schedules the departure of the packet that takes the link next. Its transmission starts when the link becomes free, or
 * when the packet was enqueued if that is later. If egress dropped the previous packet, that packet took no link time (or
 * only the port's drop_cost of it), so the link became free earlier. If the transmission would be over by now, the packet
 * departs now.
 */
static void transmit(struct core *core, struct port *port, struct core_packet *packet, uint64_t now_ns)
{
	if (unlikely(port->dynamics))
		packet->back_to_back = serve_dynamic(core, port, packet, 1000, now_ns, &port->head_finish);
	else
		packet->back_to_back = link_serve(&port->link, port->rate_bps, packet->enqueue_ns,
						  link_wire_bits(packet->queue_bytes), &port->head_finish);
	if (port->head_finish.free_ns < now_ns)
		port->head_finish = (struct link_clock){now_ns, 0};
	packet->time_ns = port->head_finish.free_ns;
	packet->seq = core->next_seq++;
	heap_push(&core->departures, packet);
}

void traffic_transmit(struct core *core, struct core_packet *packet, uint64_t now_ns)
{
	packet->enqueue_ns = now_ns; /* it came to the link now */
	transmit(core, &core->ports[packet->port], packet, now_ns);
}

static inline void transmit_next(struct core *core, struct port *port, uint64_t now_ns)
{
	struct core_packet *head = likely(!port->scheduler)
					   ? queue_peek(&port->queue)
					   : scheduler_next(&core->schedulers[port->scheduler]);

	if (head)
		transmit(core, port, head, now_ns);
}

/* The link stays idle for a share of a dropped packet's transmission time, as on a Tofino: there egress drops packets
 * that the traffic manager has already scheduled.
 */
static void charge_drop(const struct core *core, struct port *port, const struct core_packet *packet)
{
	serve_dynamic(core, port, packet, port->drop_cost_permille, core->now_ns, &port->link);
}

/* Puts a packet into one of the port's queues. False: a limit refused it, and it is gone. */
static inline bool admit(struct core *core, struct port *port, struct queue *queue, uint16_t number,
			 struct core_packet *packet, uint64_t now_ns)
{
	struct intrinsic *std = &packet->packet.std;
	uint32_t depth_packets = queue_packets(queue);

	if (unlikely(!queue_enqueue(queue, packet))) {
		packet_pool_put(core, packet);
		return false;
	}
	if (unlikely(!port->carries_data && !packet->generation)) {
		port->carries_data = true;
		link_find_lookahead(core);
	}
	packet->port = number;
	packet->enqueue_ns = now_ns;
	std->egress_port = number;
	std->enq_timestamp = (uint32_t)pipeline_ticks(now_ns);
	std->enq_qdepth = depth_packets & 0x7ffff;
	return true;
}

static __attribute__((__noinline__)) void enqueue_scheduled(struct core *core, struct port *port,
							    uint16_t number, struct core_packet *packet,
							    uint64_t now_ns)
{
	struct scheduler *scheduler = &core->schedulers[port->scheduler];
	struct intrinsic *std = &packet->packet.std;
	struct queue *queue;

	if (port->scheduler == OUTER_QUEUE) {
		outer_enqueue(core, port, number, packet);
		return;
	}
	if (!scheduler_classify(scheduler, std)) {
		core->stats.priority_drops++;
		packet_pool_put(core, packet);
		return;
	}
	queue = &scheduler->queues[std->qid].queue;
	if (!queue_fits(&port->queue, packet)) {
		queue_count_drop(queue);
		queue_count_drop(&port->queue);
		packet_pool_put(core, packet);
		return;
	}
	if (!admit(core, port, queue, number, packet, now_ns)) {
		queue_count_drop(&port->queue);
		return;
	}
	scheduler_queued(core, scheduler, packet);
	if (queue_packets(&port->queue) == 1)
		transmit_next(core, port, now_ns);
}

static inline void enqueue(struct core *core, struct port *port, uint16_t number, struct core_packet *packet,
			   uint64_t now_ns)
{
	if (unlikely(port->scheduler)) {
		enqueue_scheduled(core, port, number, packet, now_ns);
		return;
	}
	packet->packet.std.qid = 0;
	if (admit(core, port, &port->queue, number, packet, now_ns) && queue_packets(&port->queue) == 1)
		transmit(core, port, packet, now_ns);
}

static __attribute__((__noinline__)) void enqueue_watched(struct core *core, struct port *port,
							  uint16_t number, struct core_packet *packet,
							  uint64_t now_ns)
{
	watch_queued(core, number, packet, now_ns);
	enqueue(core, port, number, packet, now_ns);
}

void traffic_enqueue(struct core *core, uint16_t number, struct core_packet *packet, uint64_t now_ns)
{
	struct port *port = &core->ports[number % PIPELINE_PORTS];

	if (unlikely(!port->attached)) {
		core->stats.port_unknown_drops++;
		packet_pool_put(core, packet);
		return;
	}
	if (unlikely(packet->watched))
		enqueue_watched(core, port, number, packet, now_ns);
	else
		enqueue(core, port, number, packet, now_ns);
}

static void run_egress(struct core *core, struct core_packet *packet, uint64_t now_ns, uint32_t left_packets)
{
	struct intrinsic *std = &packet->packet.std;

	std->deq_timedelta = (uint32_t)(pipeline_ticks(now_ns) - pipeline_ticks(packet->enqueue_ns));
	std->deq_qdepth = left_packets & 0x7ffff;
	std->egress_global_timestamp = pipeline_ticks(now_ns) & CORE_TIME_MASK;
	std->egress_spec = 0; /* egress sets it again to drop the packet */
	std->clone = false;
	std->again_fields = 0;
	std->truncate_bytes = UINT32_MAX;
	pipeline_egress(core->pipeline, &packet->packet);
}

__attribute__((__noinline__)) void traffic_tap(const struct core *core, const struct core_packet *packet,
					       uint64_t now_ns)
{
	uint32_t bytes = packet->packet.frame_bytes;

	core->config.tap(now_ns, packet->port, packet->packet.frame,
			 packet->body ? packet_resident_bytes(packet) : bytes, bytes);
}

static void put_output(struct core *core, struct port *port, struct core_packet *packet, uint64_t now_ns)
{
	uint64_t exit_ns = now_ns + port->delay_ns; /* of the port's delay line; then comes the flow's own */

	if (unlikely(core->config.tap))
		traffic_tap(core, packet, now_ns);
	if (unlikely(port->dynamics)) {
		exit_ns = impair(&core->dynamics[port->dynamics], exit_ns);
		if (exit_ns == CORE_NEVER_NS) {
			packet_pool_put(core, packet);
			return;
		}
	}
	packet->departure_ns = now_ns;
	packet->time_ns = exit_ns + packet->flow_delay_ns;
	packet->seq = core->next_seq++;
	heap_push_lane(&core->outputs, &port->outputs, packet);
}

void traffic_output(struct core *core, struct core_packet *packet, uint64_t now_ns)
{
	core->ports[packet->port].stats.departed++;
	put_output(core, &core->ports[packet->port], packet, now_ns);
}

/* Processes the earliest departure. An egress clone is made before the deparser changes the frame. The clone is queued
 * at the same ns, after its original has left the queue. A recirculated packet takes no time on this port's link, like a
 * dropped one: it has a link of its own.
 */
void traffic_depart(struct core *core)
{
	struct core_packet *packet = heap_pop(&core->departures);
	struct port *port = &core->ports[packet->port];
	uint64_t now_ns = packet->time_ns;
	struct core_packet *clone = NULL;
	uint32_t left_packets;
	bool dropped;

	core->now_ns = now_ns;
	if (likely(!port->scheduler)) {
		queue_dequeue(&port->queue);
		left_packets = queue_packets(&port->queue);
	} else if (port->scheduler == OUTER_QUEUE) {
		outer_depart(core, port, packet);
		return;
	} else {
		left_packets = scheduler_remove(core, &core->schedulers[port->scheduler], packet);
	}
	run_egress(core, packet, now_ns, left_packets);
	if (unlikely(packet->watched))
		watch_left(core, packet, now_ns);
	dropped = packet->packet.std.egress_spec == PIPELINE_DROP_PORT;
	if (packet->packet.std.clone)
		clone = mirror_clone(core, packet, INSTANCE_EGRESS_CLONE);

	if (dropped) {
		port->stats.egress_drops++;
		if (port->drop_cost_permille)
			charge_drop(core, port, packet);
		packet_pool_put(core, packet);
	} else if (unlikely(packet->packet.std.again_fields)) {
		pipeline_deparse(core->pipeline, &packet->packet);
		if (unlikely(packet->watched))
			watch_recirculated(packet);
		recirculation_send(core, packet, now_ns);
	} else {
		port->link = port->head_finish;
		port->stats.departed++;
		if (unlikely(port->scheduler && port->scheduler != OUTER_QUEUE))
			scheduler_sent(&core->schedulers[port->scheduler], packet);
		pipeline_deparse(core->pipeline, &packet->packet);
		if (unlikely(packet->watched))
			watch_departed(core, packet);
		put_output(core, port, packet, now_ns);
	}
	transmit_next(core, port, now_ns);
	if (clone)
		mirror_send(core, clone, now_ns);
}
