/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Answers requests for ports, mirror sessions, `program` and `stats`. flow_control.c answers requests for flows and
 * links, dynamics_control.c those for links that change during a run, scheduler.c, multicast.c and recirculation.c those
 * for their parts, the pipeline all others. A request changes nothing before all of it is read and checked.
 */
#include "control.h"
#include "core_state.h"
#include "dynamics_control.h"
#include "freestanding.h"
#include "request.h"

#define MAX_DROP_COST 1000

struct port *control_read_port(struct core *core, struct words *words, uint64_t *number)
{
	if (!words_next(words) || !words_number(words, number) || *number >= PIPELINE_DROP_PORT)
		return NULL;
	return core->ports[*number].attached ? &core->ports[*number] : NULL;
}

static size_t port_set(struct core *core, struct port *port, struct words *words, struct text *text)
{
	struct queue_limits limits = queue_get_limits(&port->queue);
	struct setting settings[] = {
		{"rate", REQUEST_MIN_RATE_BPS, REQUEST_MAX_RATE_BPS, port->rate_bps},
		{"delay", 0, REQUEST_MAX_DELAY_NS, port->delay_ns},
		{"access", REQUEST_MIN_RATE_BPS, REQUEST_MAX_RATE_BPS, port->access_bps},
		{"limit_packets", 0, REQUEST_MAX_LIMIT, limits.packets},
		{"limit_bytes", 0, REQUEST_MAX_LIMIT, limits.bytes},
		{"drop_cost", 0, MAX_DROP_COST, port->drop_cost_permille},
	};
	size_t error = request_settings(text, words, settings, sizeof(settings) / sizeof(settings[0]), NULL);

	if (error)
		return error;
	/* The carried fraction is in units of the old rate. Dropping it loses less than one ns. */
	if (port->rate_bps != settings[0].value)
		port->link.carry = port->head_finish.carry = 0;
	if (port->access_bps != settings[2].value)
		port->access.carry = 0;
	port->rate_bps = settings[0].value;
	port->delay_ns = settings[1].value;
	port->access_bps = settings[2].value;
	queue_set_limits(&port->queue, (struct queue_limits){settings[3].value, settings[4].value});
	port->drop_cost_permille = settings[5].value;
	link_find_lookahead(core);
	return request_accept(text);
}

static size_t port_show(const struct core *core, const struct port *port, struct words *words,
			struct text *text)
{
	struct queue_limits limits = queue_get_limits(&port->queue);

	if (words_next(words))
		return request_refuse_word(text, "unexpected", words, "port show PORT");
	text_put(text, "ok\n");
	text_put_pair(text, "rate", port->rate_bps);
	text_put_pair(text, "delay", port->delay_ns);
	text_put_pair(text, "access", port->access_bps);
	text_put_pair(text, "limit_packets", limits.packets);
	text_put_pair(text, "limit_bytes", limits.bytes);
	text_put_pair(text, "drop_cost", port->drop_cost_permille);
	dynamics_show(core, port, text);
	return text_end(text);
}

static size_t control_port(struct core *core, struct words *words, struct text *text)
{
	bool set = words_next(words) && words_is(words, "set");
	uint64_t number;
	struct port *port;

	if (!set && !words_is(words, "show"))
		return request_refuse_word(text, "unknown request port", words,
					   "port set PORT ..., port show PORT");
	port = control_read_port(core, words, &number);
	if (!port)
		return request_refuse_word(text, "no such port", words,
					   "one that the switch was started with");
	return set ? port_set(core, port, words, text) : port_show(core, port, words, text);
}

static size_t mirror_set(struct core *core, uint32_t number, struct words *words, struct text *text)
{
	struct setting settings[] = {{"truncate", 0, CORE_MAX_FRAME_BYTES, 0},
				     {"group", 0, CORE_MAX_GROUP, 0}};
	struct mirror_session *session;
	uint64_t port;
	size_t error;

	if (!control_read_port(core, words, &port)) {
		if (!words_is(words, "-"))
			return request_refuse_word(text, "no such port", words,
						   "one that the switch was started with, or - for none");
		port = PIPELINE_DROP_PORT;
	}
	error = request_settings(text, words, settings, 2, NULL);
	if (error)
		return error;
	session = mirror_add(core, number);
	if (!session)
		return request_refuse(text, "too many mirror sessions: delete one");
	session->port = (uint16_t)port;
	session->truncate_bytes = settings[0].value ? (uint32_t)settings[0].value : UINT32_MAX;
	session->group = (uint16_t)settings[1].value;
	link_find_lookahead(core);
	return request_accept(text);
}

static size_t mirror_show(const struct mirror_session *session, struct text *text)
{
	text_put(text, "ok\n");
	text_put_pair(text, "port", session->port);
	text_put_pair(text, "truncate", session->truncate_bytes == UINT32_MAX ? 0 : session->truncate_bytes);
	text_put_pair(text, "group", session->group);
	return text_end(text);
}

static size_t control_mirror(struct core *core, struct words *words, struct text *text)
{
	bool set = words_next(words) && words_is(words, "set");
	bool show = words_is(words, "show");
	struct mirror_session *session;
	uint64_t number;

	if (!set && !show && !words_is(words, "delete"))
		return request_refuse_word(
			text, "unknown request mirror", words,
			"mirror set SESSION PORT [truncate BYTES] [group GROUP], mirror show SESSION, mirror "
			"delete SESSION");
	if (!words_next(words) || !words_number(words, &number) || number > UINT32_MAX)
		return request_refuse_word(text, "mirror session", words, "a number of 32 bits");
	if (set)
		return mirror_set(core, (uint32_t)number, words, text);
	session = mirror_find(core, (uint32_t)number);
	if (!session || words_next(words))
		return request_refuse_word(text, "no such mirror session, or words after it", words,
					   "mirror show SESSION, mirror delete SESSION");
	if (show)
		return mirror_show(session, text);
	session->set = false;
	link_find_lookahead(core);
	return request_accept(text);
}

void control_program(const struct core *core, struct text *text)
{
	text_format(text, "ok\nname %s\ndigest %s\nports", pipeline_program_name, pipeline_program_digest);
	for (uint32_t port = 0; port < PIPELINE_PORTS; port++)
		if (core->ports[port].attached)
			text_format(text, " %u", port);
	text_put(text, "\n");
	text_put_pair(text, "packets", core->config.packets);
	text_put_pair(text, "frame_bytes", core->config.frame_bytes);
	text_put_pair(text, "headroom", pipeline_headroom_bytes);
}

static void stats_of_port(const struct core *core, struct text *text, uint32_t number)
{
	const struct port *port = &core->ports[number];
	struct queue_counters queue = queue_get_counters(&port->queue);

	text_put_port(text, number, "rx_frames", port->stats.rx_frames);
	text_put_port(text, number, "rx_bytes", port->stats.rx_bytes);
	text_put_port(text, number, "oversize", port->stats.oversize);
	text_put_port(text, number, "ingress_drops", port->stats.ingress_drops);
	text_put_port(text, number, "queue_drops", queue.drops);
	text_put_port(text, number, "egress_drops", port->stats.egress_drops);
	text_put_port(text, number, "departed", port->stats.departed);
	if (port->dynamics)
		text_put_port(text, number, "lost", core->dynamics[port->dynamics].lost);
	text_put_port(text, number, "queue_packets", queue_packets(&port->queue));
	text_put_port(text, number, "queue_bytes", queue_bytes(&port->queue));
	text_put_port(text, number, "queue_max_packets", queue.max_packets);
}

/* When the core is idle, rx_frames + clones = oversize + pool_exhausted + all drops except clone_drops + departed; lost
 * packets are among the departed. Exceptions: a clone or copy for which the pool had no packet is in pool_exhausted and
 * not in clones or multicast_copies; a packet that is copied to a group is no longer counted, its copies are.
 */
void control_stats(const struct core *core, struct text *text)
{
	text_put(text, "ok\n");
	for (uint32_t number = 0; number < PIPELINE_PORTS; number++)
		if (core->ports[number].attached)
			stats_of_port(core, text, number);
	text_put_pair(text, "pool_exhausted", core->stats.pool_exhausted);
	text_put_pair(text, "arrivals_clamped", core->stats.arrivals_clamped);
	text_put_pair(text, "clones", core->stats.clones);
	text_put_pair(text, "clone_drops", core->stats.clone_drops);
	text_put_pair(text, "multicast_copies", core->stats.multicast_copies);
	text_put_pair(text, "multicast_drops", core->stats.multicast_drops);
	text_put_pair(text, "port_unknown_drops", core->stats.port_unknown_drops);
	text_put_pair(text, "priority_drops", core->stats.priority_drops);
	text_put_pair(text, "recirculated", core->recirculation.packets);
	text_put_pair(text, "recirculation_drops", core->recirculation.drops);
	text_put_pair(text, "packets_used", core->packets_used);
	text_put_pair(text, "packets_used_max", core->stats.packets_used_max);
	text_put_pair(text, "virtual_time_ns", core->now_ns);
}

size_t core_control(struct core *core, const char *request, char *reply, size_t reply_bytes)
{
	struct words words = {.at = request};
	struct text text;
	bool program, stats;

	text_start(&text, reply, reply_bytes);
	if (!words_next(&words))
		return request_refuse(&text, "empty request: see docs/control-protocol.md");
	if (words_is(&words, "port"))
		return control_port(core, &words, &text);
	if (words_is(&words, "queue"))
		return scheduler_control(core, &words, &text);
	if (words_is(&words, "flow"))
		return flow_control(core, &words, &text);
	if (words_is(&words, "link"))
		return flow_link_control(core, &words, &text);
	if (words_is(&words, "schedule"))
		return schedule_control(core, &words, &text);
	if (words_is(&words, "loss"))
		return loss_control(core, &words, &text);
	if (words_is(&words, "jitter"))
		return jitter_control(core, &words, &text);
	if (words_is(&words, "mirror"))
		return control_mirror(core, &words, &text);
	if (words_is(&words, "multicast"))
		return multicast_control(core, &words, &text);
	if (words_is(&words, "watch"))
		return watch_control(core, &words, &text);
	if (words_is(&words, "recirculation"))
		return recirculation_control(core, &words, &text);
	program = words_is(&words, "program");
	stats = words_is(&words, "stats");
	if ((program || stats) && words_next(&words))
		return request_refuse_word(&text, "unexpected", &words, "program, stats");
	if (program)
		control_program(core, &text);
	else if (stats)
		control_stats(core, &text);
	if (program || stats)
		return text_end(&text);
	return pipeline_control(core->pipeline, request, reply, reply_bytes);
}
