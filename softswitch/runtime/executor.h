/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * What everyone who runs the core counts at its edges, and the requests that concern it. The process and the driver
 * of a kernel share this, so that what they count has one name and one meaning; what one of them has not is 0.
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
	uint64_t rx_truncated;	      /* longer than a slot of the ring: refused */
	uint64_t rx_checksum_missing; /* the sender left the checksum to hardware that is not there */
	uint64_t tx_frames;
	uint64_t tx_bytes;
	uint64_t tx_errors; /* frames given up, each counted once */
	uint64_t tx_retries;
	uint64_t tx_waiting_max; /* frames that waited at once because the kernel refused one for now */
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
	/* Brings what is not counted all the time up to date, mono_ns at least. */
	void (*measure)(struct executor *executor);
};

/* One message of docs/control-protocol.md: request[request_bytes] is NUL and belongs to the buffer; of a request
 * longer than EXECUTOR_REQUEST_BYTES no more need be there. Returns the length of the reply, as core_control does;
 * EXECUTOR_REPLY_BYTES hold every reply of the executor's own.
 */
size_t executor_answer(struct executor *executor, const char *request, size_t request_bytes, char *reply,
		       size_t reply_bytes);

#endif
