/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Lateness of a port's outputs: a histogram of real minus due time, and the errors of the gaps between frames and of
 * the span of all frames. Below 64 ns each ns has a bucket; above, each power of two has 64 buckets.
 */
#ifndef SOFTSWITCH_LATENESS_H
#define SOFTSWITCH_LATENESS_H

#include <stdbool.h>
#include <stdint.h>

enum {
	LATENESS_SUB_BITS = 6,	/* a bucket is at most 1.6 % wide */
	LATENESS_MAX_BITS = 40, /* the last bucket also holds everything later than 18 minutes */
	LATENESS_BUCKETS = (LATENESS_MAX_BITS - LATENESS_SUB_BITS + 1) << LATENESS_SUB_BITS,
};

struct lateness {
	uint64_t buckets[LATENESS_BUCKETS];
	uint64_t departures;
	uint64_t gap_frames; /* back to back with the previous frame, and due at a later ns */
	uint64_t gap_errors; /* of gap_frames: the real gap is more than 10 % off the virtual gap */
	uint64_t gap_error_max_ns;
	uint64_t real_span_ns;	  /* from the first frame to the last, by time of hand-over */
	uint64_t virtual_span_ns; /* by due time */
	uint64_t first_due_ns;
	uint64_t first_real_ns;
	uint64_t last_due_ns;
	uint64_t last_real_ns; /* 0: no frame before */
};

void lateness_count(struct lateness *lateness, uint64_t due_ns, uint64_t real_ns, bool back_to_back);
uint64_t lateness_edge_ns(uint32_t bucket); /* the largest lateness that the bucket holds */
void lateness_reset(struct lateness *lateness);

#endif
