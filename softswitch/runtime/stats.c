/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Every counter of the core as `NAME VALUE` lines. When the core is idle, rx_frames + clones = oversize +
 * pool_exhausted + all drops except clone_drops + departed; lost packets are among the departed. Exception: a clone for which the pool had no packet is in
 * pool_exhausted and not in clones.
 */
#include "stats.h"
#include "core_state.h"

static void put_port(struct text *text, uint32_t port, const char *name, uint64_t value)
{
	text_put(text, "port.");
	text_put_number(text, port);
	text_put(text, ".");
	text_put_pair(text, name, value);
}

static void write_port(const struct core *core, struct text *text, uint32_t number)
{
	const struct port *port = &core->ports[number];
	struct queue_counters queue = queue_get_counters(&port->queue);

	put_port(text, number, "rx_frames", port->stats.rx_frames);
	put_port(text, number, "rx_bytes", port->stats.rx_bytes);
	put_port(text, number, "oversize", port->stats.oversize);
	put_port(text, number, "ingress_drops", port->stats.ingress_drops);
	put_port(text, number, "queue_drops", queue.drops);
	put_port(text, number, "egress_drops", port->stats.egress_drops);
	put_port(text, number, "departed", port->stats.departed);
	if (port->dynamics)
		put_port(text, number, "lost", core->dynamics[port->dynamics].lost);
	put_port(text, number, "queue_packets", queue_packets(&port->queue));
	put_port(text, number, "queue_bytes", queue_bytes(&port->queue));
	put_port(text, number, "queue_max_packets", queue.max_packets);
}

void stats_write(const struct core *core, struct text *text)
{
	for (uint32_t number = 0; number < PIPELINE_PORTS; number++)
		if (core->ports[number].attached)
			write_port(core, text, number);
	text_put_pair(text, "pool_exhausted", core->stats.pool_exhausted);
	text_put_pair(text, "arrivals_clamped", core->stats.arrivals_clamped);
	text_put_pair(text, "clones", core->stats.clones);
	text_put_pair(text, "clone_drops", core->stats.clone_drops);
	text_put_pair(text, "multicast_drops", core->stats.multicast_drops);
	text_put_pair(text, "port_unknown_drops", core->stats.port_unknown_drops);
	text_put_pair(text, "packets_used", core->packets_used);
	text_put_pair(text, "packets_used_max", core->stats.packets_used_max);
	text_put_pair(text, "virtual_time_ns", core->now_ns);
}
