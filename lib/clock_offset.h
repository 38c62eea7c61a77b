/* SPDX-License-Identifier: MIT
 * CLOCK_REALTIME - CLOCK_MONOTONIC. The kernel stamps frames and datagrams in CLOCK_REALTIME; our times are
 * CLOCK_MONOTONIC.
 *
 * A slew moves both clocks alike, so the offset is constant until somebody steps CLOCK_REALTIME. Each sample is an
 * interval that contains the offset. The intersection of all intervals since the last step is the estimate; an empty
 * intersection is a step.
 */
#ifndef LIB_CLOCK_OFFSET_H
#define LIB_CLOCK_OFFSET_H

#include <stdbool.h>
#include <stdint.h>

struct clock_offset {
	int64_t realtime_minus_mono_ns; /* the estimate */
	int64_t low_ns, high_ns;	/* bounds of the offset since the last step */
	int64_t first_ns;		/* the estimate before the first step; valid if steps > 0 */
	uint64_t samples;
	uint64_t steps;
	uint64_t max_step_ns;
};

/* Takes enough samples for an error of a few ns; this takes less than 0.1 ms. */
void clock_offset_open(struct clock_offset *offset);

/* Takes one sample. True: CLOCK_REALTIME was stepped since the previous sample, and kernel stamps between the two
 * samples may be converted with the wrong offset.
 */
bool clock_offset_sample(struct clock_offset *offset);

/* Adds a sample: CLOCK_REALTIME was read between two readings of CLOCK_MONOTONIC. Returns as clock_offset_sample. */
bool clock_offset_narrow(struct clock_offset *offset, int64_t mono_before_ns, int64_t realtime_ns,
			 int64_t mono_after_ns);

static inline int64_t clock_offset_first_ns(const struct clock_offset *offset)
{
	return offset->steps ? offset->first_ns : offset->realtime_minus_mono_ns;
}

#endif
