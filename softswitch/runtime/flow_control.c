/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Requests for the settings of flows and of shared access links. A request may name many flows: they are all checked
 * before the first is set.
 */
#include "control.h"
#include "core_state.h"
#include "freestanding.h"
#include "request.h"

#define NEXT_FLOW ";"
#define ANY_FLOW  "any" /* in place of a destination: all flows of the source address, or of its port */

/* One flow of a request, with the values that it gets. */
struct wish {
	struct flow_key key;
	bool known; /* the flow has settings already */
	uint64_t delay_ns;
	uint64_t access_bps;
	uint64_t link;
	bool is_last;
};

/* Reads the current word as a protocol. False: it is none. */
static bool read_protocol(struct words *words, uint8_t *protocol)
{
	uint64_t number;

	if (words_is(words, "tcp"))
		*protocol = PROTOCOL_TCP;
	else if (words_is(words, "udp"))
		*protocol = PROTOCOL_UDP;
	else if (words_number(words, &number) && (number == PROTOCOL_TCP || number == PROTOCOL_UDP))
		*protocol = (uint8_t)number;
	else
		return false;
	return true;
}

/* Returns 0, or the length of an error reply. */
static size_t read_port(uint8_t port[2], struct words *words, struct text *text)
{
	uint64_t number;

	if (!words_next(words) || !words_number(words, &number) || number > 65535)
		return request_refuse_word(text, "TCP or UDP port", words, "0 to 65535");
	port[0] = (uint8_t)(number >> 8);
	port[1] = (uint8_t)number;
	return 0;
}

/* Reads the protocol and the source port after ANY_FLOW. Without a protocol the key is the source address, and the
 * words that follow are settings. Returns 0, or the length of an error reply.
 */
static size_t read_source_key(struct flow_key *key, struct words *words, struct text *text)
{
	struct words ahead = *words;

	key->kind = KEY_SOURCE_ADDRESS;
	if (!words_next(&ahead) || !read_protocol(&ahead, &key->protocol))
		return 0;
	*words = ahead;
	key->kind = KEY_SOURCE_PORT;
	return read_port(key->src_port, words, text);
}

/* Returns 0, or the length of an error reply. */
static size_t read_flow_key(struct flow_key *key, struct words *words, struct text *text)
{
	size_t error;

	memset(key, 0, sizeof(*key));
	if (!words_next(words) || !words_address(words, key->src_addr))
		return request_refuse_word(text, "address", words, "an IPv4 or IPv6 address");
	if (words_next(words) && words_is(words, ANY_FLOW))
		return read_source_key(key, words, text);
	if (!words_address(words, key->dst_addr))
		return request_refuse_word(text, "address", words,
					   "an IPv4 or IPv6 address, or any for all flows of the source");
	words_next(words);
	if (!read_protocol(words, &key->protocol))
		return request_refuse_word(text, "protocol", words, "tcp (6) or udp (17)");
	error = read_port(key->src_port, words, text);
	return error ? error : read_port(key->dst_port, words, text);
}

/* Reads one flow of the request. Settings that the request does not name keep their values. Returns 0, or the length of
 * an error reply.
 */
static size_t read_wish(struct core *core, struct words *words, struct text *text, struct wish *wish)
{
	struct setting settings[] = {
		{"delay", 0, REQUEST_MAX_DELAY_NS, 0},
		{"access", REQUEST_MIN_RATE_BPS, REQUEST_MAX_RATE_BPS, 0},
		{"link", 0, CORE_SHARED_LINKS, 0},
	};
	const struct flow *flow;
	size_t error = read_flow_key(&wish->key, words, text);

	if (error)
		return error;
	flow = flow_find(&core->flows, &wish->key);
	if (flow) {
		settings[0].value = flow->delay_ns;
		settings[1].value = flow->access_bps;
		settings[2].value = flow->link;
	}
	error = request_settings(text, words, settings, sizeof(settings) / sizeof(settings[0]), NEXT_FLOW);
	wish->known = flow;
	wish->delay_ns = settings[0].value;
	wish->access_bps = settings[1].value;
	wish->link = settings[2].value;
	wish->is_last = !words_is(words, NEXT_FLOW);
	return error;
}

/* The table has room for the flow. */
static void grant(struct core *core, const struct wish *wish)
{
	struct flow *flow = flow_add(&core->flows, &wish->key);

	if (flow->access_bps != wish->access_bps)
		flow->access.carry = 0;
	flow->delay_ns = wish->delay_ns;
	flow->access_bps = wish->access_bps;
	flow->link = (uint32_t)wish->link;
}

static size_t flow_set(struct core *core, struct words *words, struct text *text)
{
	struct words again = *words;
	struct wish wish;
	uint32_t added = 0; /* a new flow that is named twice counts twice, and may be refused without need */
	size_t error;

	do {
		error = read_wish(core, words, text, &wish);
		if (error)
			return error;
		added += !wish.known;
	} while (!wish.is_last);
	if (added > core->flows.limit - core->flows.count)
		return request_refuse(text,
				      "flow table full: start the switch with a higher --flows (driver: "
				      "bufferscope_switch.flows)");
	do {
		read_wish(core, &again, text, &wish);
		grant(core, &wish);
	} while (!wish.is_last);
	return request_accept(text);
}

size_t flow_link_control(struct core *core, struct words *words, struct text *text)
{
	struct setting rate = {"access", REQUEST_MIN_RATE_BPS, REQUEST_MAX_RATE_BPS, 0};
	struct shared_link *link;
	uint64_t number;
	size_t error;

	if (!words_next(words) || !words_is(words, "set"))
		return request_refuse_word(text, "unknown request link", words, "link set LINK access BPS");
	if (!words_next(words) || !words_number(words, &number) || !number || number > CORE_SHARED_LINKS)
		return request_refuse_word(text, "link", words, "1 to 1024");
	link = &core->links[number];
	rate.value = link->rate_bps;
	error = request_settings(text, words, &rate, 1, NULL);
	if (error)
		return error;
	if (link->rate_bps != rate.value)
		link->clock.carry = 0;
	link->rate_bps = rate.value;
	return request_accept(text);
}

_Static_assert(CORE_SHARED_LINKS == 1024, "the message of flow_link_control");

size_t flow_control(struct core *core, struct words *words, struct text *text)
{
	words_next(words);
	if (words_is(words, "set"))
		return flow_set(core, words, text);
	if (!words_is(words, "clear"))
		return request_refuse_word(text, "unknown request flow", words,
					   "flow set ... [; ...], flow clear");
	if (words_next(words))
		return request_refuse_word(text, "unexpected", words, "flow clear");
	flow_clear(&core->flows);
	return request_accept(text);
}
