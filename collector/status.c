// SPDX-License-Identifier: MIT
// The status line. A receiving thread writes it, so it must not block.
#include <inttypes.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "collect.h"

enum {
	NS_PER_MS = 1000000,
	UNCHANGED_NS = 1000000000, /* between two lines while nothing arrives */
};

void status_open(struct status *status, bool on, uint64_t every_ms, uint64_t now_ns)
{
	*status = (struct status){
		.on = on,
		.every_ns = every_ms * NS_PER_MS,
		.started_ns = now_ns,
		.last_ns = now_ns,
	};
}

bool status_is_due(const struct status *status, uint64_t received, uint64_t now_ns)
{
	uint64_t age_ns = now_ns - status->last_ns;

	return status->on && age_ns >= status->every_ns &&
	       (received != status->last_received || age_ns >= UNCHANGED_NS);
}

/* A pipe that polls as writable takes PIPE_BUF bytes at once, and a line is shorter. */
static void put_line(const char *line, int length)
{
	struct pollfd ready = {.fd = STDOUT_FILENO, .events = POLLOUT};

	if (poll(&ready, 1, 0) == 1 && ready.revents & POLLOUT &&
	    write(STDOUT_FILENO, line, (size_t)length) < 0)
		return; /* the reader has exited; the summary has all counters */
}

void status_show(struct collector *collector, uint64_t received, uint64_t now_ns)
{
	struct status *status = &collector->status;
	struct writer_counts counts = writer_counts(&collector->writer);
	uint64_t drops, accepted, missing;
	double rate =
		(double)(received - status->last_received) / ((double)(now_ns - status->last_ns) * 1e-9);
	char line[512];
	int length;

	receiver_kernel_drops(&collector->workers->receiver);
	drops = collector_total(collector, offsetof(struct worker, receiver.kernel_drops));
	accepted = collector_total(collector, offsetof(struct worker, intake.accepted));
	pthread_mutex_lock(&collector->sequences->lock);
	missing = sequence_total(collector->sequences, offsetof(struct sequence_stream, missing));
	pthread_mutex_unlock(&collector->sequences->lock);
	length = snprintf(line, sizeof(line),
			  "{\"elapsed_s\":%.3f,\"received\":%" PRIu64
			  ",\"received_per_s\":%.0f,\"stored\":%" PRIu64 ",\"missing\":%" PRIu64
			  ",\"kernel_drops\":%" PRIu64 ",\"malformed\":%" PRIu64 ",\"write_errors\":%" PRIu64
			  "}\n",
			  (double)(now_ns - status->started_ns) * 1e-9, received, rate, counts.stored,
			  missing, drops, received > accepted ? received - accepted : 0, counts.write_errors);
	put_line(line, length);
	status->last_ns = now_ns;
	status->last_received = received;
}
