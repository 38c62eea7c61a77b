// SPDX-License-Identifier: MIT
// Traces the TCP sockets of one network namespace into a raw file: a record of the socket's state for every segment
// received in state ESTABLISHED and every segment retransmitted. The kernel fills rings and wakes nobody. This process
// polls the rings every --read-ms and writes blocks. It counts every event that the kernel could not deliver or the
// disk could not store.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "../../lib/clock_ns.h"
#include "../../lib/commit.h"
#include "../../lib/privileges.h"
#include "../../lib/report.h"
#include "../../wire/tcp_record.h"
#include "block_writer.h"
#include "instance.h"
#include "kernel_clock.h"
#include "options.h"
#include "segments.h"
#include "source.h"
#include "summary.h"
#include "tracefs.h"

enum {
	SETTLE_MS = 20, /* between two checks for events that were in progress when the source was stopped */
	SETTLE_TRIES = 50,
	FLUSH_EVERY_MS = 500, /* a crash loses the records of about half a second */
	NS_PER_MS = 1000000,
};

const char *const program_name = "tcp_trace";

static volatile sig_atomic_t stop;

struct trace {
	struct options options;
	struct source source;
	struct block_writer writer;
	struct segment_counter segments;
	struct account account;
	int64_t clock_offset_ns; /* CLOCK_MONOTONIC of this process minus the kernel's clock */
	bool draining;		 /* the source is stopped: signals no longer end the reading */
};

static void on_signal(int signal)
{
	(void)signal;
	stop = 1;
}

static uint64_t cpu_time_ns(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000 +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}

/* The sink of the rings. */
static int take_record(void *context, void *data, size_t bytes)
{
	struct trace *trace = context;
	struct tcp_record record = *(const struct tcp_record *)data;
	struct account *account = &trace->account;

	record.mono_ns += (uint64_t)trace->clock_offset_ns;
	memcpy(block_writer_slot(&trace->writer), &record, bytes);
	if (!account->first_mono_ns || record.mono_ns < account->first_mono_ns)
		account->first_mono_ns = record.mono_ns;
	if (record.mono_ns > account->last_mono_ns)
		account->last_mono_ns = record.mono_ns;
	block_writer_added(&trace->writer);
	return stop && !trace->draining ? -EINTR : 0;
}

static void read_rings(struct trace *trace)
{
	trace->writer.lost_records = trace->source.operations->lost_in_rings(&trace->source);
	trace->source.operations->read(&trace->source);
	trace->writer.lost_records = trace->source.operations->lost_in_rings(&trace->source);
}

/* Does every step that needs privileges or a resource. Returns 0, or -errno after one message. */
static int prepare(struct trace *trace)
{
	int err = source_open(&trace->source, &trace->options, take_record, trace);

	if (!err)
		err = block_writer_open(&trace->writer, trace->options.output, BLOCK_TCP, TCP_RECORD_VERSION,
					TCP_RECORD_BYTES);
	if (!err)
		err = report_check(trace->options.summary);
	if (!err)
		err = segments_open(&trace->segments, trace->options.netns);
	if (!err)
		err = kernel_clock_offset(&trace->clock_offset_ns);
	if (!err)
		err = drop_privileges(trace->options.summary);
	return err ? err : trace->source.operations->start(&trace->source);
}

/* Empties the rings, writes blocks and prints the status until a signal arrives. */
static void run(struct trace *trace)
{
	uint64_t now_ns = mono_now_ns(), flush_ns = now_ns, status_ns = now_ns;
	sigset_t unblocked;

	sigemptyset(&unblocked);
	while (!stop) {
		const struct timespec pause = {.tv_nsec = (long)trace->options.read_ms * NS_PER_MS};

		ppoll(NULL, 0, &pause, &unblocked);
		read_rings(trace);
		now_ns = mono_now_ns();
		if (now_ns - flush_ns >= FLUSH_EVERY_MS * (uint64_t)NS_PER_MS) {
			block_writer_flush(&trace->writer);
			flush_ns = now_ns;
		}
		if (trace->options.status && now_ns - status_ns >= trace->options.status_ms * NS_PER_MS) {
			status_json(&trace->account);
			status_ns = now_ns;
		}
	}
}

/* Stops the source and reads the rings until they are empty. */
static int drain(struct trace *trace)
{
	const struct timespec pause = {.tv_nsec = SETTLE_MS * NS_PER_MS};
	uint64_t missing = 1;

	trace->source.operations->stop(&trace->source);
	trace->draining = true;
	for (int tries = 0; missing && tries < SETTLE_TRIES; tries++) {
		read_rings(trace);
		missing =
			trace->source.operations->unread(&trace->source, block_writer_taken(&trace->writer));
		if (missing)
			nanosleep(&pause, NULL);
	}
	if (missing)
		complain("ending the trace: %llu events were counted and neither recorded nor lost; the "
			 "counters do not agree",
			 (unsigned long long)missing);
	return missing ? -EIO : 0;
}

/* Returns 0, or -EIO if an event was lost, recorded twice or not written, or if the counters do not agree, or if a file
 * could not be written or synced; each cause has had its message.
 */
static int finish(struct trace *trace, uint64_t cpu_before_ns)
{
	int drained = drain(trace);
	int written = block_writer_close(&trace->writer);
	bool lost = trace->source.operations->report_losses(&trace->source);

	trace->account.segments = segments_since(&trace->segments);
	trace->account.user_ns = cpu_time_ns() - cpu_before_ns;
	return report_write(trace->options.summary, summary_print, &trace->account) || drained || written ||
			       lost
		       ? -EIO
		       : 0;
}

static void block_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	sigset_t blocked;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	sigaddset(&blocked, SIGINT);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file size limit then fails write(2) and counts like a full disk */
}

static int stale(bool remove)
{
	int tracefs = tracefs_open();
	int err = tracefs < 0 ? tracefs : instances_stale(tracefs, remove);

	if (tracefs >= 0)
		close(tracefs);
	return err ? EXIT_REFUSED : 0;
}

int main(int argc, char **argv)
{
	struct trace trace = {0};
	uint64_t cpu_before_ns;
	int err;

	if (argc == 3 && !strcmp(argv[1], "--stale") &&
	    (!strcmp(argv[2], "list") || !strcmp(argv[2], "remove")))
		return stale(argv[2][0] == 'r');

	err = options_parse(&trace.options, argc, argv);
	if (err)
		return err > 0 ? 0 : EXIT_REFUSED;
	trace.account = (struct account){.source = &trace.source, .writer = &trace.writer};
	block_signals();

	err = prepare(&trace);
	if (err) {
		block_writer_discard(&trace.writer);
		segments_close(&trace.segments);
		source_close(&trace.source);
		return EXIT_REFUSED;
	}
	cpu_before_ns = cpu_time_ns();
	puts("ready");
	fflush(stdout);

	run(&trace);
	err = finish(&trace, cpu_before_ns);
	segments_close(&trace.segments);
	if (source_close(&trace.source))
		err = -EIO;
	return err ? EXIT_INCOMPLETE : 0;
}
