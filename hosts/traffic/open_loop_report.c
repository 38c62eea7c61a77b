// SPDX-License-Identifier: MIT
// open_loop.json: the datagrams sent, and their lateness.
#include <inttypes.h>
#include <stdio.h>

#include "../../lib/commit.h"
#include "open_loop.h"

static void print_all(FILE *file, const void *context)
{
	const struct open_loop *run = context;
	uint64_t datagrams = 0, ip_bytes = 0;

	for (uint32_t index = 0; index < run->drawn.flows; index++) {
		datagrams += run->flows[index].datagrams;
		ip_bytes += run->flows[index].ip_bytes;
	}
	fprintf(file,
		"{\"start_mono_ns\":%" PRIu64 ",\"end_mono_ns\":%" PRIu64 ",\"ended_mono_ns\":%" PRIu64
		",\n \"stopped_by\":%s%s%s,\"mean_gap_ns\":%.6f,\"datagrams\":%" PRIu64
		",\"ip_bytes\":%" PRIu64 ",\"unsent\":%" PRIu64 ",\n \"lateness_max_ns\":%" PRIu64
		",\"lateness_ns\":",
		run->start_mono_ns, run->end_mono_ns, run->ended_mono_ns, run->stopped ? "\"" : "",
		run->stopped ? run->stopped : "null", run->stopped ? "\"" : "", run->schedule.mean_gap_ns,
		datagrams, ip_bytes, run->unsent, run->lateness.max_ns);
	send_lateness_print(file, &run->lateness);
	fputs(",\n \"flows\":[", file);
	for (uint32_t index = 0; index < run->drawn.flows; index++)
		fprintf(file,
			"%s\n  {\"client_port\":%" PRIu64 ",\"datagrams\":%" PRIu64 ",\"ip_bytes\":%" PRIu64
			"}",
			index ? "," : "", run->first_client_port + index, run->flows[index].datagrams,
			run->flows[index].ip_bytes);
	fputs("]}\n", file);
}

int open_loop_report(const struct open_loop *run)
{
	return report_write(run->report, print_all, run);
}
