// SPDX-License-Identifier: MIT
// The summary as JSON. Its keys are fixed, and its values are numbers and booleans, so nothing needs quoting.
#include "collect.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "lib/commit.h"

static void put_streams(FILE *to, const struct sequence_tracker *sequences)
{
	const struct sequence_stream *stream;

	fputs("  \"streams\": [", to);
	for (unsigned int index = 0; index < sequences->stream_count; index++) {
		stream = &sequences->streams[index];
		fprintf(to,
			"%s\n    {\"switch_id\": %u, \"egress_port\": %u, \"at_ingress\": %s, \"received\": "
			"%" PRIu64 ", \"first_seq\": %" PRIu64 ", \"last_seq\": %" PRIu64
			", \"gaps\": %" PRIu64 ", \"missing\": %" PRIu64 ", \"duplicates\": %" PRIu64
			", \"reordered\": %" PRIu64 ", \"too_late\": %" PRIu64 ", \"restarts\": %" PRIu64 "}",
			index ? "," : "", stream->switch_id, stream->egress_port,
			stream->at_ingress ? "true" : "false", stream->received, sequence_first(stream),
			sequence_last(stream), stream->gaps, stream->missing, stream->duplicates,
			stream->reordered, stream->too_late, stream->restarts);
	}
	fputs("],\n", to);
}

static void put_number(FILE *to, const char *name, uint64_t value)
{
	fprintf(to, "  \"%s\": %" PRIu64 ",\n", name, value);
}

static void put_total(FILE *to, const char *name, const struct sequence_tracker *sequences,
		      size_t field_offset)
{
	put_number(to, name, sequence_total(sequences, field_offset));
}

static void put_sum(FILE *to, const char *name, const struct collector *collector, size_t field_offset)
{
	put_number(to, name, collector_total(collector, field_offset));
}

static void put_workers(FILE *to, const struct collector *collector)
{
	fputs("  \"receivers\": [", to);
	for (unsigned int number = 0; number < collector->worker_count; number++)
		fprintf(to, "%s{\"received\": %" PRIu64 ", \"kernel_drops\": %" PRIu64 "}",
			number ? ", " : "", collector->workers[number].intake.received,
			collector->workers[number].receiver.kernel_drops);
	fputs("],\n", to);
}

/* The times of the first and of the last receipt of all workers that received. */
static void put_times(FILE *to, const struct collector *collector)
{
	uint64_t first = 0, last = 0;

	for (unsigned int number = 0; number < collector->worker_count; number++) {
		const struct intake *intake = &collector->workers[number].intake;

		if (intake->last_rx_mono_ns && (!first || intake->first_rx_mono_ns < first))
			first = intake->first_rx_mono_ns;
		if (intake->last_rx_mono_ns > last)
			last = intake->last_rx_mono_ns;
	}
	put_number(to, "first_rx_mono_ns", first);
	fprintf(to, "  \"last_rx_mono_ns\": %" PRIu64 "\n}\n", last);
}

static void put_summary(FILE *to, const void *context)
{
	const struct collector *collector = context;
	const struct writer_counts *counts = &collector->writer.counts;
	const struct sequence_tracker *sequences = collector->sequences;
	const struct losses *losses = &collector->losses;
	/* Every worker sees each step of the clock. */
	const struct clock_offset *clock = &collector->workers->clock;

	fputs("{\n", to);
	put_sum(to, "received", collector, offsetof(struct worker, intake.received));
	put_number(to, "stored", counts->stored);
	put_sum(to, "short", collector, offsetof(struct worker, intake.short_count));
	put_sum(to, "bad_version", collector, offsetof(struct worker, intake.bad_version));
	put_sum(to, "trailing", collector, offsetof(struct worker, intake.trailing));
	put_sum(to, "stranger_datagrams", collector, offsetof(struct worker, receiver.strangers));
	put_total(to, "gaps", sequences, offsetof(struct sequence_stream, gaps));
	put_total(to, "missing", sequences, offsetof(struct sequence_stream, missing));
	put_total(to, "duplicates", sequences, offsetof(struct sequence_stream, duplicates));
	put_total(to, "reordered", sequences, offsetof(struct sequence_stream, reordered));
	put_total(to, "too_late", sequences, offsetof(struct sequence_stream, too_late));
	put_total(to, "restarts", sequences, offsetof(struct sequence_stream, restarts));
	put_number(to, "untracked", sequences->untracked);
	put_sum(to, "unstamped", collector, offsetof(struct worker, intake.unstamped));
	put_sum(to, "kernel_drops", collector, offsetof(struct worker, receiver.kernel_drops));
	put_sum(to, "receive_errors", collector, offsetof(struct worker, receive_errors));
	put_sum(to, "buffer_stalls", collector, offsetof(struct worker, stalls));
	put_number(to, "write_errors", counts->write_errors);
	put_number(to, "write_lost", counts->lost);
	put_number(to, "blocks", counts->blocks);
	put_number(to, "bytes", counts->bytes);
	put_sum(to, "receive_buffer_bytes", collector, offsetof(struct worker, receiver.buffer_bytes));
	put_workers(to, collector);
	put_streams(to, sequences);
	fprintf(to,
		"  \"host_drops\": {\"udp_receive_buffer\": %" PRIu64 ", \"udp_checksum\": %" PRIu64
		", \"interface\": %" PRIu64 ", \"backlog\": %" PRIu64 "},\n",
		losses->udp_receive_buffer, losses->udp_checksum, losses->interface, losses->backlog);
	fprintf(to,
		"  \"clock\": {\"samples\": %" PRIu64 ", \"first_realtime_minus_mono_ns\": %" PRId64
		", \"last_realtime_minus_mono_ns\": %" PRId64 ", \"steps\": %" PRIu64
		", \"max_step_ns\": %" PRIu64 "},\n",
		clock->samples, clock_offset_first_ns(clock), clock->realtime_minus_mono_ns, clock->steps,
		clock->max_step_ns);
	put_times(to, collector);
}

int summary_write(const char *path, const struct collector *collector)
{
	int err;

	if (!path) {
		put_summary(stdout, collector);
		return fflush(stdout) ? -errno : 0;
	}
	err = report_write(path, put_summary, collector);
	if (err)
		put_summary(stderr, collector);
	return err;
}
