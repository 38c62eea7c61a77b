/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Requests for ports, flows and mirror sessions; the pipeline answers the others. A request that is answered with an
 * error has changed nothing, because all of it is read and checked first.
 */
#include "control.h"
#include "core_state.h"
#include "freestanding.h"
#include "stats.h"

/* With these bounds no product or sum of times in links.c can overflow. At the lowest rate the longest frame takes 9
 * minutes. */
#define MIN_RATE_BPS 1000ull
#define MAX_RATE_BPS 1000000000000000ull
#define MAX_DELAY_NS 3600000000000ull
#define MAX_LIMIT    ((1ull << 40) - 1)

struct setting {
	const char *name;
	uint64_t min; /* 0 is always allowed */
	uint64_t max;
	uint64_t value; /* the current value, then the requested one */
};

static size_t refuse(struct text *text, const char *why)
{
	text_put(text, "error ");
	text_put(text, why);
	text_put(text, "\n");
	return text_end(text);
}

/* "error LABEL 'word': ALLOWED" */
static size_t refuse_word(struct text *text, const char *label, const struct words *words,
			  const char *allowed)
{
	text_put(text, "error ");
	text_put(text, label);
	text_put(text, " '");
	text_put_bytes(text, words->word, words->word_bytes);
	text_put(text, "': ");
	text_put(text, allowed);
	text_put(text, "\n");
	return text_end(text);
}

static size_t accept(struct text *text)
{
	text_put(text, "ok\n");
	return text_end(text);
}

/* Reads "NAME VALUE..." to the end of the request. Returns 0, or the length of an error reply. */
static size_t read_settings(struct text *text, struct words *words, struct setting *settings, int count)
{
	while (words_next(words)) {
		struct setting *setting = NULL;
		uint64_t value;

		for (int index = 0; index < count && !setting; index++)
			if (words_is(words, settings[index].name))
				setting = &settings[index];
		if (!setting) {
			text_put(text, "error unknown setting '");
			text_put_bytes(text, words->word, words->word_bytes);
			text_put(text, "': one of");
			for (int index = 0; index < count; index++) {
				text_put(text, " ");
				text_put(text, settings[index].name);
			}
			text_put(text, "\n");
			return text_end(text);
		}
		if (!words_next(words) || !words_number(words, &value) || value > setting->max ||
		    (value && value < setting->min)) {
			text_put(text, "error ");
			text_put(text, setting->name);
			text_put(text, " '");
			text_put_bytes(text, words->word, words->word_bytes);
			text_put(text, "': 0 (without bound), or from ");
			text_put_number(text, setting->min);
			text_put(text, " to ");
			text_put_number(text, setting->max);
			text_put(text, "\n");
			return text_end(text);
		}
		setting->value = value;
	}
	return 0;
}

static struct port *read_port(struct core *core, struct words *words, uint64_t *number)
{
	if (!words_next(words) || !words_number(words, number) || *number >= PIPELINE_DROP_PORT)
		return NULL;
	return core->ports[*number].attached ? &core->ports[*number] : NULL;
}

static size_t port_set(struct core *core, struct port *port, struct words *words, struct text *text)
{
	struct queue_limits limits = queue_get_limits(&port->queue);
	struct setting settings[] = {
		{"rate", MIN_RATE_BPS, MAX_RATE_BPS, port->rate_bps},
		{"delay", 0, MAX_DELAY_NS, port->delay_ns},
		{"access", MIN_RATE_BPS, MAX_RATE_BPS, port->access_bps},
		{"limit_packets", 0, MAX_LIMIT, limits.packets},
		{"limit_bytes", 0, MAX_LIMIT, limits.bytes},
	};
	size_t error = read_settings(text, words, settings, sizeof(settings) / sizeof(settings[0]));

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
	link_find_lookahead(core);
	return accept(text);
}

static size_t port_show(const struct port *port, struct words *words, struct text *text)
{
	struct queue_limits limits = queue_get_limits(&port->queue);

	if (words_next(words))
		return refuse_word(text, "unexpected", words, "port show PORT");
	text_put(text, "ok\n");
	text_put_pair(text, "rate", port->rate_bps);
	text_put_pair(text, "delay", port->delay_ns);
	text_put_pair(text, "access", port->access_bps);
	text_put_pair(text, "limit_packets", limits.packets);
	text_put_pair(text, "limit_bytes", limits.bytes);
	return text_end(text);
}

static size_t control_port(struct core *core, struct words *words, struct text *text)
{
	bool set = words_next(words) && words_is(words, "set");
	uint64_t number;
	struct port *port;

	if (!set && !words_is(words, "show"))
		return refuse_word(text, "unknown request 'port", words, "port set PORT ..., port show PORT");
	port = read_port(core, words, &number);
	if (!port)
		return refuse_word(text, "no such port", words, "one that the switch was started with");
	return set ? port_set(core, port, words, text) : port_show(port, words, text);
}

/* Returns 0, or the length of an error reply. */
static size_t read_flow_key(struct flow_key *key, struct words *words, struct text *text)
{
	uint8_t *addresses[] = {key->src_addr, key->dst_addr};
	uint8_t *ports[] = {key->src_port, key->dst_port};
	uint64_t number;

	memset(key, 0, sizeof(*key));
	for (int index = 0; index < 2; index++)
		if (!words_next(words) || !words_address(words, addresses[index]))
			return refuse_word(text, "address", words, "an IPv4 or IPv6 address");
	words_next(words);
	number = words_is(words, "tcp") ? PROTOCOL_TCP : words_is(words, "udp") ? PROTOCOL_UDP : 0;
	if (!number && !words_number(words, &number))
		number = 0;
	if (number != PROTOCOL_TCP && number != PROTOCOL_UDP)
		return refuse_word(text, "protocol", words, "tcp (6) or udp (17)");
	key->protocol = (uint8_t)number;
	for (int index = 0; index < 2; index++) {
		if (!words_next(words) || !words_number(words, &number) || number > 65535)
			return refuse_word(text, "TCP or UDP port", words, "0 to 65535");
		ports[index][0] = (uint8_t)(number >> 8);
		ports[index][1] = (uint8_t)number;
	}
	return 0;
}

static size_t flow_set(struct core *core, struct words *words, struct text *text)
{
	struct setting settings[] = {
		{"delay", 0, MAX_DELAY_NS, 0},
		{"access", MIN_RATE_BPS, MAX_RATE_BPS, 0},
	};
	struct flow_key key;
	struct flow *flow;
	size_t error = read_flow_key(&key, words, text);

	if (error)
		return error;
	flow = flow_find(&core->flows, &key);
	if (flow) {
		settings[0].value = flow->delay_ns;
		settings[1].value = flow->access_bps;
	}
	error = read_settings(text, words, settings, sizeof(settings) / sizeof(settings[0]));
	if (error)
		return error;
	flow = flow_add(&core->flows, &key);
	if (!flow)
		return refuse(text, "flow table full: start the switch with more --flows");
	if (flow->access_bps != settings[1].value)
		flow->access.carry = 0;
	flow->delay_ns = settings[0].value;
	flow->access_bps = settings[1].value;
	return accept(text);
}

static size_t control_flow(struct core *core, struct words *words, struct text *text)
{
	words_next(words);
	if (words_is(words, "set"))
		return flow_set(core, words, text);
	if (!words_is(words, "clear"))
		return refuse_word(text, "unknown request 'flow", words, "flow set ..., flow clear");
	if (words_next(words))
		return refuse_word(text, "unexpected", words, "flow clear");
	flow_clear(&core->flows);
	return accept(text);
}

static size_t mirror_set(struct core *core, uint32_t number, struct words *words, struct text *text)
{
	struct setting settings[] = {{"truncate", 0, CORE_MAX_FRAME_BYTES, 0}};
	struct mirror_session *session;
	uint64_t port;
	size_t error;

	if (!read_port(core, words, &port))
		return refuse_word(text, "no such port", words, "one that the switch was started with");
	error = read_settings(text, words, settings, 1);
	if (error)
		return error;
	session = mirror_add(core, number);
	if (!session)
		return refuse(text, "too many mirror sessions: delete one");
	session->port = (uint16_t)port;
	session->truncate_bytes = settings[0].value ? (uint32_t)settings[0].value : UINT32_MAX;
	link_find_lookahead(core);
	return accept(text);
}

static size_t mirror_show(const struct mirror_session *session, struct text *text)
{
	text_put(text, "ok\n");
	text_put_pair(text, "port", session->port);
	text_put_pair(text, "truncate", session->truncate_bytes == UINT32_MAX ? 0 : session->truncate_bytes);
	return text_end(text);
}

static size_t control_mirror(struct core *core, struct words *words, struct text *text)
{
	bool set = words_next(words) && words_is(words, "set");
	bool show = words_is(words, "show");
	struct mirror_session *session;
	uint64_t number;

	if (!set && !show && !words_is(words, "delete"))
		return refuse_word(text, "unknown request 'mirror", words,
				   "mirror set SESSION PORT [truncate BYTES], mirror show SESSION, mirror "
				   "delete SESSION");
	if (!words_next(words) || !words_number(words, &number) || number > UINT32_MAX)
		return refuse_word(text, "mirror session", words, "a number of 32 bits");
	if (set)
		return mirror_set(core, (uint32_t)number, words, text);
	session = mirror_find(core, (uint32_t)number);
	if (!session || words_next(words))
		return refuse_word(text, "no such mirror session, or words after it", words,
				   "mirror show SESSION, mirror delete SESSION");
	if (show)
		return mirror_show(session, text);
	session->set = false;
	link_find_lookahead(core);
	return accept(text);
}

void control_program(const struct core *core, struct text *text)
{
	text_put(text, "ok\nname ");
	text_put(text, pipeline_program_name);
	text_put(text, "\ndigest ");
	text_put(text, pipeline_program_digest);
	text_put(text, "\nports");
	for (uint32_t port = 0; port < PIPELINE_PORTS; port++)
		if (core->ports[port].attached) {
			text_put(text, " ");
			text_put_number(text, port);
		}
	text_put(text, "\n");
	text_put_pair(text, "packets", core->config.packets);
	text_put_pair(text, "frame_bytes", core->config.frame_bytes);
	text_put_pair(text, "headroom", PIPELINE_HEADROOM);
}

void control_stats(const struct core *core, struct text *text)
{
	text_put(text, "ok\n");
	stats_write(core, text);
}

size_t core_control(struct core *core, const char *request, char *reply, size_t reply_bytes)
{
	struct words words = {.at = request};
	struct text text;
	bool program, stats;

	text_start(&text, reply, reply_bytes);
	if (!words_next(&words))
		return refuse(&text, "empty request: see docs/control-protocol.md");
	if (words_is(&words, "port"))
		return control_port(core, &words, &text);
	if (words_is(&words, "flow"))
		return control_flow(core, &words, &text);
	if (words_is(&words, "mirror"))
		return control_mirror(core, &words, &text);
	program = words_is(&words, "program");
	stats = words_is(&words, "stats");
	if ((program || stats) && words_next(&words))
		return refuse_word(&text, "unexpected", &words, "program, stats");
	if (program)
		control_program(core, &text);
	else if (stats)
		control_stats(core, &text);
	if (program || stats)
		return text_end(&text);
	return pipeline_control(core->pipeline, request, reply, reply_bytes);
}
