/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Counters around the core, and the requests that read them. The process and the kernel driver are executors: they
 * share these counters, with the same names and meanings. A counter stays 0 in an executor that cannot count it.
 */
#ifndef SOFTSWITCH_EXECUTOR_H
#define SOFTSWITCH_EXECUTOR_H

#include "core.h"
#include "lateness.h"

enum {
	EXECUTOR_MAX_PORTS = 64,
	EXECUTOR_MIN_FRAME_BYTES = 256,
	EXECUTOR_REQUEST_BYTES = 4096,
	EXECUTOR_REPLY_BYTES = 1 << 17,
};

struct executor_port {
	uint16_t number;
	uint64_t rx_ring_drops;
	uint64_t rx_ring_slots;
	uint64_t rx_truncated; /* frames longer than a slot of the ring: the core refuses them */
	/* Process: the sender left the checksum to a NIC. Driver: no memory to compute the checksum. */
	uint64_t rx_checksum_missing;
	uint64_t tx_frames;
	uint64_t tx_bytes;
	uint64_t tx_errors; /* frames given up */
	uint64_t tx_retries;
	uint64_t tx_waiting_max; /* maximum number of frames that waited behind a refused frame */
	uint64_t tx_last_errno;
	struct lateness lateness;
};

struct executor {
	const char *name; /* "process", "driver" */
	struct core *core;
	struct executor_port *ports;
	uint32_t port_count;
	uint64_t clock_steps;
	uint64_t realtime_step_max_ns;
	int64_t realtime_minus_mono_ns;
	uint64_t loop_gap_max_ns;
	uint64_t loops;
	uint64_t sleeps;
	uint64_t mono_ns;
	uint64_t taps_frames; /* of captures of ports: recorded, and not recorded */
	uint64_t taps_lost;
	/* Called before `stats` is answered: updates mono_ns, and the counters that the packet path does not update. */
	void (*measure)(struct executor *executor);
};

/* Answers one request of docs/control-protocol.md. The caller terminates the request: request[request_bytes] is NUL. A
 * request of more than EXECUTOR_REQUEST_BYTES is refused unread. Returns the length of the reply, as core_control does.
 * EXECUTOR_REPLY_BYTES is enough for `stats`, `program` and `lateness`; other replies may be cut (text.h).
 */
size_t executor_answer(struct executor *executor, const char *request, size_t request_bytes, char *reply,
		       size_t reply_bytes);

#endif
