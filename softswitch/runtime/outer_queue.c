// SPDX-License-Identifier: GPL-2.0 OR MIT
/* See outer_queue.h. Ingress and the deparser have run before the packet enters the queue. Egress does not run: a mark that
 * the queue set would be lost, because egress writes the headers that ingress parsed.
 */
#include "outer_queue.h"
#include "core_state.h"

void core_set_outer_queue(struct core *core, uint16_t number, const struct outer_queue *queue)
{
	core->outer = *queue;
	core->ports[number].scheduler = OUTER_QUEUE;
}

/* A call from outside of `put` and `next` never passes an event that the core has still to process. */
static void advance(struct core *core, uint64_t now_ns)
{
	uint64_t event_ns = core_next_event_ns(core);

	if (now_ns > event_ns)
		now_ns = event_ns;
	if (now_ns > core->now_ns)
		core->now_ns = now_ns;
}

void outer_enqueue(struct core *core, struct port *port, uint16_t number, struct core_packet *packet)
{
	struct core_output frame;

	packet->port = number;
	packet->packet.std.egress_port = number;
	pipeline_deparse(core->pipeline, &packet->packet);
	frame = (struct core_output){
		.due_ns = core->now_ns,
		.frame = packet->packet.frame,
		.bytes = packet->packet.frame_bytes,
		.frame_bytes = packet->body ? packet_resident_bytes(packet) : packet->packet.frame_bytes,
		.body_offset = packet->head_bytes,
		.body = packet->body,
		.port = number,
		.packet = packet,
	};
	packet->body = NULL;
	core->outer.entering = packet;
	core->outer.put(core->outer.context, &frame);
	if (core->outer.entering)
		queue_count_in(&port->queue, packet);
	core->outer.entering = NULL;
}

void core_outer_send(struct core *core, void *handle, uint64_t now_ns, core_copy *copy, const void *source,
		     void *body)
{
	struct core_packet *packet = handle;

	advance(core, now_ns);
	packet->body = body;
	copy(packet->packet.frame, source, body ? packet_resident_bytes(packet) : packet->packet.frame_bytes);
	traffic_transmit(core, packet, core->now_ns);
}

/* A packet that the queue had admitted is dropped at a departure that takes no time on the link. */
void core_outer_drop(struct core *core, void *handle, uint64_t now_ns)
{
	struct core_packet *packet = handle;
	struct port *port = &core->ports[packet->port];

	advance(core, now_ns);
	if (core->outer.entering == packet) {
		core->outer.entering = NULL;
		queue_count_drop(&port->queue);
	} else {
		queue_count_out(&port->queue, packet);
		port->stats.egress_drops++;
		if (packet->watched)
			watch_left(core, packet, core->now_ns);
	}
	packet_pool_put(core, packet);
}

void outer_depart(struct core *core, struct port *port, struct core_packet *packet)
{
	queue_count_out(&port->queue, packet);
	port->link = port->head_finish;
	if (packet->watched) {
		watch_left(core, packet, core->now_ns);
		watch_departed(core, packet);
	}
	traffic_output(core, packet, core->now_ns);
	core->outer.next(core->outer.context);
}
