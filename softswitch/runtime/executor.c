/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Requests that need the executor: `stats` and `program` extend the core's replies; only the executor answers
 * `lateness`.
 */
#include "executor.h"
#include "control.h"
#include "text.h"

static void put_lateness(struct text *text, const char *name, uint32_t port, uint64_t value)
{
	text_format(text, "%s.%u %llu\n", name, port, (unsigned long long)value);
}

static void write_port(struct text *text, const struct executor_port *port)
{
	const struct lateness *lateness = &port->lateness;

	text_put_port(text, port->number, "rx_ring_drops", port->rx_ring_drops);
	text_put_port(text, port->number, "rx_ring_slots", port->rx_ring_slots);
	text_put_port(text, port->number, "rx_truncated", port->rx_truncated);
	text_put_port(text, port->number, "rx_checksum_missing", port->rx_checksum_missing);
	text_put_port(text, port->number, "tx_frames", port->tx_frames);
	text_put_port(text, port->number, "tx_bytes", port->tx_bytes);
	text_put_port(text, port->number, "tx_errors", port->tx_errors);
	text_put_port(text, port->number, "tx_retries", port->tx_retries);
	text_put_port(text, port->number, "tx_waiting_max", port->tx_waiting_max);
	text_put_port(text, port->number, "tx_last_errno", port->tx_last_errno);
	put_lateness(text, "departures", port->number, lateness->departures);
	put_lateness(text, "gap_frames", port->number, lateness->gap_frames);
	put_lateness(text, "gap_error_over_10pct", port->number, lateness->gap_errors);
	put_lateness(text, "gap_error_max_ns", port->number, lateness->gap_error_max_ns);
	put_lateness(text, "real_span_ns", port->number, lateness->real_span_ns);
	put_lateness(text, "virtual_span_ns", port->number, lateness->virtual_span_ns);
}

static size_t stats(struct executor *executor, char *reply, size_t reply_bytes)
{
	struct text text;

	executor->measure(executor);
	text_start(&text, reply, reply_bytes);
	control_stats(executor->core, &text);
	for (uint32_t index = 0; index < executor->port_count; index++)
		write_port(&text, &executor->ports[index]);
	text_put_pair(&text, "clock_steps", executor->clock_steps);
	text_put_pair(&text, "realtime_step_max_ns", executor->realtime_step_max_ns);
	text_put_signed_pair(&text, "realtime_minus_mono_ns", executor->realtime_minus_mono_ns);
	text_put_pair(&text, "loop_gap_max_ns", executor->loop_gap_max_ns);
	text_put_pair(&text, "loops", executor->loops);
	text_put_pair(&text, "sleeps", executor->sleeps);
	text_put_pair(&text, "mono_ns", executor->mono_ns);
	text_put_pair(&text, "taps_frames", executor->taps_frames);
	text_put_pair(&text, "taps_lost", executor->taps_lost);
	return text_end(&text);
}

static size_t program(struct executor *executor, char *reply, size_t reply_bytes)
{
	struct text text;

	text_start(&text, reply, reply_bytes);
	control_program(executor->core, &text);
	text_format(&text, "executor %s\n", executor->name);
	return text_end(&text);
}

static void show(struct text *text, const struct lateness *lateness)
{
	text_put(text, "ok\n");
	for (uint32_t bucket = 0; bucket < LATENESS_BUCKETS; bucket++)
		if (lateness->buckets[bucket])
			text_format(text, "%llu %llu\n", (unsigned long long)lateness_edge_ns(bucket),
				    (unsigned long long)lateness->buckets[bucket]);
}

static void reset(struct text *text, struct executor *executor)
{
	for (uint32_t index = 0; index < executor->port_count; index++)
		lateness_reset(&executor->ports[index].lateness);
	executor->loop_gap_max_ns = 0;
	text_put(text, "ok\n");
}

static size_t lateness(struct executor *executor, struct words *words, char *reply, size_t reply_bytes)
{
	const struct executor_port *port = NULL;
	bool is_reset, is_number;
	struct text text;
	uint64_t number;

	text_start(&text, reply, reply_bytes);
	is_reset = words_next(words) && words_is(words, "reset");
	is_number = words_number(words, &number);
	if (words_next(words))
		is_reset = is_number = false;
	for (uint32_t index = 0; is_number && index < executor->port_count; index++)
		if (executor->ports[index].number == number)
			port = &executor->ports[index];
	if (is_reset)
		reset(&text, executor);
	else if (port)
		show(&text, &port->lateness);
	else
		text_put(&text, "error lateness: give `reset`, or a PORT that the switch was started with\n");
	return text_end(&text);
}

static size_t refuse(char *reply, size_t reply_bytes, const char *why)
{
	struct text text;

	text_start(&text, reply, reply_bytes);
	text_put(&text, why);
	return text_end(&text);
}

static bool has_nul(const char *at, size_t bytes)
{
	while (bytes && *at) {
		at++;
		bytes--;
	}
	return bytes;
}

size_t executor_answer(struct executor *executor, const char *request, size_t request_bytes, char *reply,
		       size_t reply_bytes)
{
	struct words words = {.at = request};
	struct words rest;

	_Static_assert(EXECUTOR_REQUEST_BYTES == 4096, "the error reply below has the number");
	if (request_bytes > EXECUTOR_REQUEST_BYTES)
		return refuse(reply, reply_bytes, "error request longer than 4096 bytes\n");
	if (has_nul(request, request_bytes))
		return refuse(reply, reply_bytes, "error request with a NUL\n");
	words_next(&words);
	rest = words;
	if (words_is(&words, "lateness"))
		return lateness(executor, &rest, reply, reply_bytes);
	if (words_is(&words, "stats") && !words_next(&rest))
		return stats(executor, reply, reply_bytes);
	if (words_is(&words, "program") && !words_next(&rest))
		return program(executor, reply, reply_bytes);
	return core_control(executor->core, request, reply, reply_bytes);
}
