// SPDX-License-Identifier: MIT
// Prints the summary (tracer.json of a run) and the status lines from the counters of the other modules.
#include "summary.h"

#include <inttypes.h>

/* Events missing from the file: the ring was full, the event was unseen, or its block could not be written. */
static uint64_t account_lost(const struct account *account)
{
	struct source_counts counts = account->source->operations->count(account->source);

	return counts.lost_in_rings + counts.lost_unseen + account->writer->unwritten;
}

static void print_counts(FILE *file, const struct account *account)
{
	struct source_counts counts = account->source->operations->count(account->source);

	fprintf(file, "\"events\":%" PRIu64 ",\"probe_events\":%" PRIu64 ",\"retransmit_events\":%" PRIu64,
		counts.events, counts.probe_events, counts.retransmit_events);
	fprintf(file, ",\"stored\":%" PRIu64 ",\"lost\":%" PRIu64, account->writer->stored,
		account_lost(account));
	fprintf(file, ",\"write_errors\":%" PRIu64 ",\"blocks\":%" PRIu64 ",\"bytes\":%" PRIu64,
		account->writer->write_errors, account->writer->blocks, account->writer->file.bytes);
}

void summary_print(FILE *file, const void *context)
{
	const struct account *account = context;
	struct source_counts counts = account->source->operations->count(account->source);

	fputc('{', file);
	print_counts(file, account);
	fprintf(file,
		",\n \"lost_in_rings\":%" PRIu64 ",\"lost_unwritten\":%" PRIu64 ",\"lost_unseen\":%" PRIu64,
		counts.lost_in_rings, account->writer->unwritten, counts.lost_unseen);
	account->source->operations->print(account->source, file);
	fprintf(file, ",\n \"kernel_segments_received\":%" PRIu64 ",\"kernel_segments_resent\":%" PRIu64,
		account->segments.received, account->segments.resent);
	fprintf(file, ",\n \"user_ns_per_event\":%.1f",
		counts.events ? (double)account->user_ns / (double)counts.events : 0);
	fprintf(file, ",\"first_mono_ns\":%" PRIu64 ",\"last_mono_ns\":%" PRIu64 "}\n",
		account->first_mono_ns, account->last_mono_ns);
}

void status_json(const struct account *account)
{
	putchar('{');
	print_counts(stdout, account);
	fputs("}\n", stdout);
	fflush(stdout);
}
