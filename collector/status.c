// SPDX-License-Identifier: MIT
// The status line. The receive thread writes it, so it must not block.
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

void status_show(struct collector *collector)
{
	struct status *status = &collector->status;
	const struct intake *intake = &collector->intake;
	struct writer_counts counts = writer_counts(&collector->writer);
	uint64_t missing = sequence_total(intake->sequences, offsetof(struct sequence_stream, missing));
	uint64_t drops = receiver_kernel_drops(&collector->receiver);
	double seconds = (double)(collector->now_ns - status->last_ns) * 1e-9;
	double rate = (double)(intake->received - status->last_received) / seconds;
	char line[512];
	int length;

	length = snprintf(
		line, sizeof(line),
		"{\"elapsed_s\":%.3f,\"received\":%" PRIu64 ",\"received_per_s\":%.0f,\"stored\":%" PRIu64
		",\"missing\":%" PRIu64 ",\"kernel_drops\":%" PRIu64 ",\"malformed\":%" PRIu64
		",\"write_errors\":%" PRIu64 "}\n",
		(double)(collector->now_ns - status->started_ns) * 1e-9, intake->received, rate,
		counts.stored, missing, drops, intake->received - intake->accepted, counts.write_errors);
	put_line(line, length);
	status->last_ns = collector->now_ns;
	status->last_received = intake->received;
}
