// SPDX-License-Identifier: MIT
// Adapts the BPF programs and their counters to the interface of a source.
#include <inttypes.h>

#include "../../lib/report.h"
#include "source.h"

static int start(struct source *source)
{
	return programs_attach(&source->programs);
}

static void read_rings(struct source *source)
{
	programs_read(&source->programs);
}

static struct source_counts count(const struct source *source)
{
	struct cpu_counters counters = programs_count(&source->programs);
	uint64_t missed = programs_missed(&source->programs);

	return (struct source_counts){
		.events = counters.probe_events + counters.retransmit_events + missed,
		.probe_events = counters.probe_events,
		.retransmit_events = counters.retransmit_events,
		.lost_in_rings = counters.lost,
		.lost_unseen = missed,
	};
}

static uint64_t lost_in_rings(const struct source *source)
{
	return programs_count(&source->programs).lost;
}

static void stop(struct source *source)
{
	programs_detach(&source->programs);
}

/* A program may still run on another CPU while it is detached. Once that run has ended, every counted event is
 * either a record or a loss.
 */
static uint64_t unread(const struct source *source, uint64_t taken)
{
	struct cpu_counters counters = programs_count(&source->programs);

	return counters.probe_events + counters.retransmit_events - counters.lost - taken;
}

static bool report_losses(const struct source *source)
{
	struct program_balance balance = programs_balance(&source->programs);
	struct source_counts counts = count(source);

	if (counts.lost_in_rings)
		complain("%" PRIu64 " of %" PRIu64
			 " events found no room in the rings: give a larger --ring-mib",
			 counts.lost_in_rings, counts.probe_events + counts.retransmit_events);
	if (balance.skipped != balance.rescued)
		complain("the kernel skipped %" PRIu64 " runs of a program and the second program recorded "
			 "%" PRIu64 " events: the trace has %s",
			 balance.skipped, balance.rescued,
			 balance.skipped > balance.rescued ? "a gap" : "events twice");
	return counts.lost_in_rings || balance.skipped != balance.rescued;
}

static void print(const struct source *source, FILE *file)
{
	const struct programs *programs = &source->programs;
	struct program_balance balance = programs_balance(programs);
	struct cpu_counters counters = programs_count(programs);
	struct program_cost cost = programs_cost(programs);
	uint64_t events = counters.probe_events + counters.retransmit_events;

	fprintf(file, ",\"lost_per_cpu\":[");
	for (uint32_t cpu = 0; cpu < programs->cpus; cpu++)
		fprintf(file, "%s%" PRIu64, cpu ? "," : "", programs->counters[cpu].lost);
	fprintf(file, "],\"retransmit_failures\":%" PRIu64 ",\"other_sockets\":%" PRIu64,
		counters.retransmit_failures, counters.other_sockets);
	fprintf(file, ",\"rescued\":%" PRIu64 ",\"skipped_runs\":%" PRIu64, balance.rescued, balance.skipped);
	fprintf(file, ",\n \"bpf_runs\":%" PRIu64 ",\"bpf_run_time_ns\":%" PRIu64, cost.runs,
		cost.run_time_ns);
	if (cost.known)
		fprintf(file, ",\"bpf_ns_per_event\":%.1f,\"bpf_ns_per_run\":%.1f",
			events ? (double)cost.run_time_ns / (double)events : 0,
			cost.runs ? (double)cost.run_time_ns / (double)cost.runs : 0);
	else
		fprintf(file, ",\"bpf_ns_per_event\":null,\"bpf_ns_per_run\":null");
	fprintf(file, ",\n \"source\":\"bpf\",\"rings\":%" PRIu32 ",\"ring_bytes\":%" PRIu64, programs->rings,
		programs->ring_bytes);
	fprintf(file, ",\"tracepoints\":[\"tcp:tcp_probe\",\"tcp:tcp_retransmit_skb\"],\n "
		      "\"unknown_fields\":[],\"retransmit_unknown_fields\":[]");
}

static int close_source(struct source *source)
{
	programs_close(&source->programs);
	return 0;
}

const struct source_operations bpf_source = {
	.start = start,
	.read = read_rings,
	.count = count,
	.lost_in_rings = lost_in_rings,
	.stop = stop,
	.unread = unread,
	.report_losses = report_losses,
	.print = print,
	.close = close_source,
};
