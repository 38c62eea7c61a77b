/* SPDX-License-Identifier: MIT
 * From datagrams to records. A batch was received into the places its records will have; what is not a
 * postcard is counted and taken out, what is one gets its stamp. No system calls here, so that it can be
 * fuzzed.
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
	uint64_t received; /* datagrams of strangers aside: the sum of the next four */
	uint64_t accepted;
	uint64_t short_count;
	uint64_t trailing;
	uint64_t bad_version;
	uint64_t unstamped; /* accepted without a kernel stamp, stamped on reading instead */
	uint64_t first_rx_mono_ns, last_rx_mono_ns; /* lowest and highest stamp; valid if accepted */
	struct sequence_tracker *sequences;
};

/* records: where the first of count arrivals was put, its stamp's place included. Returns how many records
 * are left there, with nothing between them. */
unsigned int intake_batch(struct intake *intake, uint8_t *records, const struct arrival *arrivals,
			  unsigned int count, int64_t realtime_minus_mono_ns);

#endif
