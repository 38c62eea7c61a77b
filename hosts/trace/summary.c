// SPDX-License-Identifier: MIT
// tracer.json and the status lines, from counters that are kept elsewhere.
#include "summary.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "../../lib/commit.h"
#include "../../lib/report.h"

static double per(uint64_t amount, uint64_t count)
{
	return count ? (double)amount / (double)count : 0;
}

uint64_t account_lost(const struct account *account)
{
	return programs_count(account->programs).lost + account->writer->unwritten +
	       programs_missed(account->programs);
}

static void print_counts(FILE *file, const struct account *account)
{
	struct cpu_counters count = programs_count(account->programs);

	fprintf(file, "\"events\":%" PRIu64 ",\"probe_events\":%" PRIu64 ",\"retransmit_events\":%" PRIu64,
		count.probe_events + count.retransmit_events + programs_missed(account->programs),
		count.probe_events, count.retransmit_events);
	fprintf(file, ",\"stored\":%" PRIu64 ",\"lost\":%" PRIu64, account->writer->stored,
		account_lost(account));
	fprintf(file, ",\"write_errors\":%" PRIu64 ",\"blocks\":%" PRIu64 ",\"bytes\":%" PRIu64,
		account->writer->write_errors, account->writer->blocks, account->writer->file.bytes);
}

static void print_cost(FILE *file, const struct account *account)
{
	struct cpu_counters count = programs_count(account->programs);
	struct program_cost cost = programs_cost(account->programs);
	uint64_t events = count.probe_events + count.retransmit_events;

	fprintf(file, ",\n \"bpf_runs\":%" PRIu64 ",\"bpf_run_time_ns\":%" PRIu64, cost.runs,
		cost.run_time_ns);
	if (cost.known)
		fprintf(file, ",\"bpf_ns_per_event\":%.1f,\"bpf_ns_per_run\":%.1f",
			per(cost.run_time_ns, events), per(cost.run_time_ns, cost.runs));
	else
		fprintf(file, ",\"bpf_ns_per_event\":null,\"bpf_ns_per_run\":null");
	fprintf(file, ",\"user_ns_per_event\":%.1f", per(account->user_ns, events));
}

static void print_all(FILE *file, const struct account *account)
{
	struct program_balance balance = programs_balance(account->programs);
	struct cpu_counters count = programs_count(account->programs);

	fputc('{', file);
	print_counts(file, account);
	fprintf(file,
		",\n \"lost_in_rings\":%" PRIu64 ",\"lost_unwritten\":%" PRIu64 ",\"lost_unseen\":%" PRIu64,
		count.lost, account->writer->unwritten, programs_missed(account->programs));
	fprintf(file, ",\"lost_per_cpu\":[");
	for (uint32_t cpu = 0; cpu < account->programs->cpus; cpu++)
		fprintf(file, "%s%" PRIu64, cpu ? "," : "", account->programs->counters[cpu].lost);
	fprintf(file,
		"],\"retransmit_failures\":%" PRIu64 ",\"other_sockets\":%" PRIu64 ",\"rescued\":%" PRIu64,
		count.retransmit_failures, count.other_sockets, balance.rescued);
	fprintf(file, ",\"skipped_runs\":%" PRIu64, balance.skipped);
	print_cost(file, account);
	fprintf(file, ",\n \"rings\":%" PRIu32 ",\"ring_bytes\":%" PRIu64, account->programs->rings,
		account->programs->ring_bytes);
	fprintf(file, ",\"tracepoints\":[\"tcp:tcp_probe\",\"tcp:tcp_retransmit_skb\"]");
	fprintf(file, ",\n \"first_mono_ns\":%" PRIu64 ",\"last_mono_ns\":%" PRIu64 "}\n",
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
	struct cpu_counters count = programs_count(account->programs);
	uint64_t events = count.probe_events + count.retransmit_events;

	fprintf(stderr, "%9.0f events/s  %" PRIu64 " events  %" PRIu64 " retransmits  %" PRIu64 " lost\n",
		(double)(events - previous_events) / seconds, events, count.retransmit_events,
		account_lost(account));
}
