// SPDX-License-Identifier: MIT
// tcp_flows.json: the times of the run, the results of each long flow, and counts of finite flows by their end. With
// --records each flow that began also has a record.
#include <inttypes.h>

#include "../../lib/commit.h"
#include "tcp_flows.h"

/* Errors are our own texts and strerror's. Replaces the characters that JSON would have to escape. */
static void print_text(FILE *file, const char *text)
{
	fputc('"', file);
	for (; *text; text++)
		fputc(*text == '"' || *text == '\\' || (unsigned char)*text < ' ' ? '\'' : *text, file);
	fputc('"', file);
}

static void print_flow(FILE *file, const struct flow *flow)
{
	fprintf(file,
		"{\"cc\":\"%s\",\"client_port\":%d,\"server_port\":%d,\"offset_ns\":%" PRIu64
		",\"connected_mono_ns\":%" PRIu64 ",\"started_mono_ns\":%" PRIu64
		",\"bytes_written\":%" PRIu64 ",\"bytes_acked\":%" PRIu64 ",\"retransmits\":%" PRIu64
		",\"error\":",
		flow->cc, flow->client_port, flow->server_port, flow->offset_ns, flow->connected_mono_ns,
		flow->started_mono_ns, flow->bytes_written, flow->bytes_acked, flow->retransmits);
	if (flow->error)
		print_text(file, flow->error);
	else
		fputs("null", file);
	if (flow->ended_mono_ns)
		fprintf(file, ",\"stopped_mono_ns\":%" PRIu64, flow->ended_mono_ns);
	fputc('}', file);
}

static void print_finite(FILE *file, const struct run *run)
{
	fprintf(file,
		"{\"planned\":%" PRIu32 ",\"begun\":%" PRIu32 ",\"finished\":%" PRIu32 ",\"refused\":%" PRIu32
		",\"reset\":%" PRIu32 ",\"unfinished\":%" PRIu32 ",\"most_open\":%" PRIu32
		",\"records_stored\":%" PRIu64 ",\"records_unwritten\":%" PRIu64 ",\"lateness_ns\":",
		run->list.count - run->list.long_count, run->finished + run->refused + run->reset + run->open,
		run->finished, run->refused, run->reset, run->open, run->most_open,
		run->records.writer.stored, run->records.writer.unwritten);
	send_lateness_print(file, &run->lateness);
	fputc('}', file);
}

static void print_all(FILE *file, const void *context)
{
	const struct run *run = context;

	fprintf(file,
		"{\"planned_start_mono_ns\":%" PRIu64 ",\"start_mono_ns\":%" PRIu64
		",\"end_mono_ns\":%" PRIu64 ",\"ended_mono_ns\":%" PRIu64 ",\n \"finite\":",
		run->planned_start_mono_ns, run->start_mono_ns, run->end_mono_ns, run->ended_mono_ns);
	print_finite(file, run);
	fprintf(file, ",\n \"executor\":\"%s\",\"stopped_by\":%s%s%s,\"flows\":[",
		run->with_pump ? "kernel" : "process", run->stopped ? "\"" : "",
		run->stopped ? run->stopped : "null", run->stopped ? "\"" : "");
	for (uint32_t index = 0; index < run->list.long_count; index++) {
		fputs(index ? ",\n  " : "\n  ", file);
		print_flow(file, run->list.long_flows[index]);
	}
	fputs("]}\n", file);
}

int tcp_flows_report(const struct run *run)
{
	return report_write(run->report, print_all, run);
}
