/* SPDX-License-Identifier: MIT
 * Turns datagrams into records, in place: a batch is received at the final offsets of its records. Postcards get their
 * stamps; other datagrams are counted and removed. No system calls, so that a fuzzer can run it.
 */
#ifndef COLLECTOR_INTAKE_H
#define COLLECTOR_INTAKE_H

#include "sequence.h"
#include "socket.h"
#include "wire/block.h"
#include "wire/postcard.h"

enum {
	RECORD_BYTES = BLOCK_STAMP_BYTES + POSTCARD_BYTES,
	BLOCK_RECORDS = BLOCK_MAX_PAYLOAD_BYTES / RECORD_BYTES,
};

struct intake {
	uint64_t received; /* without datagrams of strangers; the sum of the next four */
	uint64_t accepted;
	uint64_t short_count;
	uint64_t trailing;
	uint64_t bad_version;
	uint64_t unstamped;			    /* accepted without a kernel stamp; stamped when read */
	uint64_t first_rx_mono_ns, last_rx_mono_ns; /* lowest and highest stamp; 0: none */
	struct sequence_tracker *sequences;	    /* of all receivers */
};

/* records: count arrivals, RECORD_BYTES apart, each with room for its stamp in front. Returns the number of records
 * kept. They are contiguous from records on. */
unsigned int intake_batch(struct intake *intake, uint8_t *records, const struct arrival *arrivals,
			  unsigned int count, int64_t realtime_minus_mono_ns);

#endif
