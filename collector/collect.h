/* SPDX-License-Identifier: MIT
 * The collector at work: socket, clock, intake and writer joined.
 */
#ifndef COLLECTOR_COLLECT_H
#define COLLECTOR_COLLECT_H

#include <signal.h>

#include "intake.h"
#include "losses.h"
#include "options.h"
#include "socket.h"
#include "status.h"
#include "writer.h"

#include "lib/clock_offset.h"

struct collector {
	const struct options *options;
	sigset_t wait_mask; /* signals are let in only while waiting: none is missed between check and wait */
	struct receiver receiver;
	struct clock_offset clock;
	struct intake intake;
	struct losses losses; /* while open: the counters at the start; then what they grew by */
	struct writer writer;
	struct status status;
	struct block *block; /* being filled; NULL: none taken, or none left */
	uint64_t records;    /* in blocks given to the writer */
	uint64_t now_ns;     /* CLOCK_MONOTONIC, of this round */
	uint64_t sampled_ns; /* the clock was, last */
	bool stalled;
	uint64_t stalls; /* times all buffers were full; the socket's buffer takes it from there */
	uint64_t receive_errors;
};

/* Opens everything, the raw file last. 0 or -errno after one line; then nothing is left behind. */
int collector_open(struct collector *collector, const struct options *options);

/* Until SIGINT or SIGTERM; what the kernel had queued by then is stored too. */
void collector_run(struct collector *collector);

/* Writes the last block and closes all. 0 or -errno: something received was not stored. */
int collector_close(struct collector *collector);

#endif
