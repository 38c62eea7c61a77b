/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The core as a table of contents: memory, arrivals, events, outputs.
 */
#include "core_state.h"
#include "../../lib/frames.h"
#include "freestanding.h"

enum {
	CACHE_LINE_BYTES = 64,
	/* One packet in eight is reserved for clones. When memory runs out the core refuses new frames first, so there
	 * is memory left for the postcards of admitted packets. */
	CLONE_SHARE = 8,
	/* Longer than the headers that our program parses, and than a postcard's clone. */
	LEAST_HEAD_BYTES = 256,
	/* In the heap: one of each port, or one of each queue if the scheduler is bmv2. */
	MAX_DEPARTURES = PIPELINE_PORTS + CORE_SCHEDULED_PORTS * CORE_PORT_QUEUES,
};

static size_t part(size_t *total, size_t bytes)
{
	size_t offset = *total;

	*total += (bytes + CACHE_LINE_BYTES - 1) / CACHE_LINE_BYTES * CACHE_LINE_BYTES;
	return offset;
}

/* The offset of each part of the memory. */
struct layout {
	size_t core, pipeline, arrivals, departures, outputs, flows, rate_entries, watch, packets, bytes;
};

static struct layout layout_of(const struct core_config *config)
{
	struct layout layout = {0};
	size_t entry_bytes = sizeof(struct heap_entry);

	layout.core = part(&layout.bytes, sizeof(struct core));
	layout.pipeline = part(&layout.bytes, pipeline_memory_bytes());
	layout.arrivals = part(&layout.bytes, config->packets * entry_bytes);
	layout.departures = part(&layout.bytes, MAX_DEPARTURES * entry_bytes);
	layout.outputs = part(&layout.bytes, config->packets * entry_bytes);
	layout.flows = part(&layout.bytes, flow_table_bytes(config->flows));
	layout.rate_entries = part(&layout.bytes, config->rate_entries * sizeof(struct rate_entry));
	layout.watch = part(&layout.bytes, config->packets * sizeof(struct watched_packet));
	layout.packets = part(&layout.bytes, packet_pool_bytes(config));
	return layout;
}

size_t core_memory_bytes(const struct core_config *config)
{
	if (!config->packets || config->packets > CORE_MAX_PACKETS || config->flows > CORE_MAX_FLOWS ||
	    config->frame_bytes < LEAST_FRAME_BYTES || config->frame_bytes > CORE_MAX_FRAME_BYTES ||
	    config->rate_entries > CORE_MAX_RATE_ENTRIES)
		return 0;
	return layout_of(config).bytes;
}

struct core *core_create(void *memory, const struct core_config *config)
{
	struct layout layout = layout_of(config);
	struct pipeline_queue_registers registers;
	uint8_t *at = memory;
	struct core *core = (struct core *)(at + layout.core);

	memset(core, 0, sizeof(*core));
	core->config = *config;
	core->pipeline = pipeline_create(at + layout.pipeline, &core->now_ns);
	core->arrivals.entries = (struct heap_entry *)(at + layout.arrivals);
	core->departures.entries = (struct heap_entry *)(at + layout.departures);
	core->outputs.entries = (struct heap_entry *)(at + layout.outputs);
	registers = pipeline_queue_registers(core->pipeline);
	for (uint32_t port = 0; port < PIPELINE_PORTS; port++) {
		queue_init(&core->ports[port].queue);
		queue_set_registers(&core->ports[port].queue, &registers, port, 0);
	}
	flow_table_init(&core->flows, at + layout.flows, config->flows);
	core->rate_entries = (struct rate_entry *)(at + layout.rate_entries);
	core->watch.packets = (struct watched_packet *)(at + layout.watch);
	packet_pool_init(core, at + layout.packets);
	return core;
}

int core_attach_port(struct core *core, uint16_t port)
{
	if (port >= PIPELINE_DROP_PORT)
		return -CORE_EINVAL;
	core->ports[port].attached = true;
	link_find_lookahead(core);
	return 0;
}

uint32_t core_head_bytes(void)
{
	return pipeline_max_parse_bytes > LEAST_HEAD_BYTES ? pipeline_max_parse_bytes : LEAST_HEAD_BYTES;
}

/* Inlined into both callers: a contiguous frame needs no call through a function pointer. */
static inline __attribute__((always_inline)) int receive(struct core *core, uint64_t arrival_ns,
							 uint16_t number, core_copy *copy, const void *source,
							 uint32_t bytes, void *body)
{
	struct port *port = &core->ports[number % PIPELINE_PORTS];
	struct core_packet *packet;
	struct flow *flow = NULL;
	struct flow_key key;

	if (unlikely(!port->attached))
		return -CORE_ENODEV;
	port->stats.rx_frames++;
	port->stats.rx_bytes += bytes;
	if (unlikely(bytes > core->config.frame_bytes || !bytes)) {
		port->stats.oversize++;
		return -CORE_EMSGSIZE;
	}
	if (unlikely(core->packets_used >= core->config.packets - core->config.packets / CLONE_SHARE)) {
		core->stats.pool_exhausted++;
		return -CORE_ENOBUFS;
	}
	packet = packet_pool_get(core);
	if (unlikely(arrival_ns < core->now_ns)) {
		core->stats.arrivals_clamped++;
		arrival_ns = core->now_ns;
	}
	packet->body = body;
	packet->head_bytes = body ? core_head_bytes() : bytes;
	copy(packet->packet.frame, source, packet->head_bytes);
	packet->packet.frame_bytes = bytes;
	packet->packet.std.ingress_port = number;
	packet->packet.std.packet_length = bytes;
	packet->queue_bytes = bytes;
	packet->port = number;
	if (core->flows.count && flow_key_of_frame(&key, packet->packet.frame, bytes))
		flow = flow_of_frame(&core->flows, &key);
	if (flow)
		packet->flow_delay_ns = flow->delay_ns;
	packet->time_ns = link_access(core, port, flow, arrival_ns, bytes);
	packet->seq = core->next_seq++;
	heap_push_lane(&core->arrivals, &port->arrivals, packet);
	return 0;
}

static void copy_bytes(uint8_t *to, const void *source, uint32_t bytes)
{
	memcpy(to, source, bytes);
}

int core_receive(struct core *core, uint64_t arrival_ns, uint16_t number, const uint8_t *frame,
		 uint32_t bytes)
{
	return receive(core, arrival_ns, number, copy_bytes, frame, bytes, NULL);
}

int core_receive_from(struct core *core, uint64_t arrival_ns, uint16_t number, core_copy *copy,
		      const void *source, uint32_t bytes, void *body)
{
	return receive(core, arrival_ns, number, copy, source, bytes, body);
}

static void clone_ingress(struct core *core, struct core_packet *packet)
{
	struct core_packet *clone = mirror_clone(core, packet, INSTANCE_INGRESS_CLONE);

	if (clone)
		mirror_send(core, clone, core->now_ns);
}

/* Processes the earliest arrival: ingress, again as long as ingress resubmits the packet, then the queue. An ingress
 * clone is queued before its original, as on BMv2.
 */
static void arrive(struct core *core)
{
	uint16_t port = core->arrivals.entries[0].packet->port;
	struct core_packet *packet = heap_pop_lane(&core->arrivals, &core->ports[port].arrivals);
	struct intrinsic *std = &packet->packet.std;

	core->now_ns = packet->time_ns;
	std->ingress_global_timestamp = pipeline_ticks(core->now_ns) & CORE_TIME_MASK;
	if (likely(!packet->passes)) {
		if (unlikely(core->config.tap))
			traffic_tap(core, packet, core->now_ns);
		if (unlikely(core->watching))
			watch_arrived(core, packet);
		pipeline_ingress(core->pipeline, &packet->packet);
	} else {
		pipeline_ingress_again(core->pipeline, &packet->packet, INSTANCE_RECIRCULATED,
				       std->again_fields);
	}
	if (std->clone)
		clone_ingress(core, packet);
	while (unlikely(std->again_fields)) {
		if (!recirculation_passes_again(core, packet))
			return;
		pipeline_ingress_again(core->pipeline, &packet->packet, INSTANCE_RESUBMITTED,
				       std->again_fields);
		if (std->clone)
			clone_ingress(core, packet);
	}
	if (unlikely(std->mcast_grp)) {
		std->instance_type = INSTANCE_REPLICATED;
		multicast_send(core, packet, std->mcast_grp, core->now_ns);
		packet_pool_put(core, packet);
	} else if (std->egress_spec == PIPELINE_DROP_PORT) {
		core->ports[port].stats.ingress_drops++;
		packet_pool_put(core, packet);
	} else {
		traffic_enqueue(core, std->egress_spec, packet, core->now_ns);
	}
}

void core_advance(struct core *core, uint64_t until_ns)
{
	for (;;) {
		uint64_t departure_ns = heap_time_ns(&core->departures);
		uint64_t arrival_ns = heap_time_ns(&core->arrivals);

		if (departure_ns <= arrival_ns) {
			if (departure_ns > until_ns || departure_ns == CORE_NEVER_NS)
				break;
			traffic_depart(core);
		} else {
			if (arrival_ns > until_ns)
				break;
			arrive(core);
		}
	}
}

uint64_t core_next_event_ns(const struct core *core)
{
	uint64_t departure_ns = heap_time_ns(&core->departures);
	uint64_t arrival_ns = heap_time_ns(&core->arrivals);

	return departure_ns < arrival_ns ? departure_ns : arrival_ns;
}

uint64_t core_lookahead_ns(const struct core *core)
{
	return core->lookahead_ns;
}

uint64_t core_next_output_ns(const struct core *core)
{
	return heap_time_ns(&core->outputs);
}

bool core_take_output(struct core *core, uint64_t until_ns, struct core_output *output)
{
	struct core_packet *packet;
	uint16_t port;

	if (heap_time_ns(&core->outputs) > until_ns || !core->outputs.count)
		return false;
	port = core->outputs.entries[0].packet->port;
	packet = heap_pop_lane(&core->outputs, &core->ports[port].outputs);
	*output = (struct core_output){
		.due_ns = packet->time_ns,
		.departure_ns = packet->departure_ns,
		.frame = packet->packet.frame,
		.bytes = packet->packet.frame_bytes,
		.frame_bytes = packet->body ? packet_resident_bytes(packet) : packet->packet.frame_bytes,
		.body_offset = packet->head_bytes,
		.body = packet->body,
		.port = port,
		.back_to_back = packet->back_to_back,
		.packet = packet,
	};
	packet->body = NULL;
	return true;
}

void core_release(struct core *core, const struct core_output *output)
{
	packet_pool_put(core, output->packet);
}
