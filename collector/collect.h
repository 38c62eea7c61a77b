/* SPDX-License-Identifier: MIT
 * The state of a collector: its receiving threads, and what they share: writer, sequence numbers, status.
 */
#ifndef COLLECTOR_COLLECT_H
#define COLLECTOR_COLLECT_H

#include <signal.h>

#include "intake.h"
#include "losses.h"
#include "options.h"
#include "socket.h"
#include "writer.h"

#include "lib/clock_offset.h"

/* The line of JSON that --status prints now and then on stdout. */
struct status {
	bool on;
	uint64_t every_ns;
	uint64_t started_ns, last_ns; /* CLOCK_MONOTONIC */
	uint64_t last_received;
};

/* A receiving thread, and the block that it fills. The first is the main thread. */
struct worker {
	struct collector *collector;
	pthread_t thread;
	struct receiver receiver;
	struct clock_offset clock;
	struct intake intake;
	struct block *block; /* being filled; NULL: none taken, or none free */
	uint64_t told_drops; /* kernel drops in blocks given to the writer */
	uint64_t now_ns;     /* CLOCK_MONOTONIC in this round */
	uint64_t sampled_ns; /* time of the last sample of clock */
	bool stalled;
	uint64_t stalls; /* times that all buffers were full; datagrams then wait in the receiver's buffer */
	uint64_t receive_errors;
};

struct collector {
	const struct options *options;
	sigset_t
		wait_mask; /* signals are enabled only while waiting, so none is lost between check and wait */
	struct sequence_tracker *sequences;
	struct losses losses; /* until collector_close: the counters at the start; then their growth */
	struct writer writer;
	struct status status;
	unsigned int worker_count;
	struct worker workers[MAX_RECEIVERS];
};

/* Opens everything, the raw file last. Returns 0, or -errno after one line; then nothing is left open. */
int collector_open(struct collector *collector, const struct options *options);

/* Runs until SIGINT or SIGTERM. Datagrams that the kernel had queued by then are stored too. */
void collector_run(struct collector *collector);

/* Writes the last blocks and closes everything. Returns 0, or -errno if a receive call or writing failed. */
int collector_close(struct collector *collector);

/* The sum over all workers of the uint64_t at this offset. While they run, of values that may be a moment old. */
uint64_t collector_total(const struct collector *collector, size_t field_offset);

/* status.c */
void status_open(struct status *status, bool on, uint64_t every_ms, uint64_t now_ns);

/* While nothing arrives there is one line per second at most. */
bool status_is_due(const struct status *status, uint64_t received, uint64_t now_ns);

/* Never waits for a slow reader: skips the line if the pipe has no room for it. */
void status_show(struct collector *collector, uint64_t received, uint64_t now_ns);

/* summary.c: the account of a run as JSON: datagrams received, stored, and lost at each place. Call after
 * collector_close. The file is complete or absent (rename). If it cannot be written, the summary goes to
 * stderr.
 */
int summary_write(const char *path, const struct collector *collector);

#endif
