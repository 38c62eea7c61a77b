// SPDX-License-Identifier: MIT
// Prints the summary (tracer.json of a run) and the status lines from the counters of the other modules.
#include "summary.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "../../lib/commit.h"
#include "../../lib/report.h"

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

static void print_all(FILE *file, const struct account *account)
{
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

int summary_open(struct summary *summary, const char *path)
{
	summary->path = path;
	if (snprintf(summary->partial, sizeof(summary->partial), "%s.partial", path) >=
	    (int)sizeof(summary->partial)) {
		complain("--summary: the path is too long (%zu bytes at most)", sizeof(summary->partial) - 9);
		return -ENAMETOOLONG;
	}
	summary->file = fopen(summary->partial, "we");
	if (!summary->file) {
		complain("creating %s: %s: give a --summary in a directory that can be written to",
			 summary->partial, strerror(errno));
		return -errno;
	}
	return 0;
}

int summary_commit(struct summary *summary, const struct account *account)
{
	int err;

	print_all(summary->file, account);
	err = commit_file(summary->file, summary->partial, summary->path);
	summary->file = NULL;
	if (err)
		complain("writing the summary %s: %s; the records are not touched by this", summary->path,
			 strerror(-err));
	return err;
}

void summary_discard(struct summary *summary)
{
	if (!summary->file)
		return;
	fclose(summary->file);
	summary->file = NULL;
	unlink(summary->partial);
}

void status_json(const struct account *account)
{
	putchar('{');
	print_counts(stdout, account);
	fputs("}\n", stdout);
	fflush(stdout);
}

void status_terminal(const struct account *account, uint64_t previous_events, double seconds)
{
	struct source_counts counts = account->source->operations->count(account->source);

	fprintf(stderr, "%9.0f events/s  %" PRIu64 " events  %" PRIu64 " retransmits  %" PRIu64 " lost\n",
		(double)(counts.events - previous_events) / seconds, counts.events, counts.retransmit_events,
		account_lost(account));
}
