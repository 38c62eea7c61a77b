/* SPDX-License-Identifier: MIT
 * The kernel stamps datagrams in CLOCK_REALTIME, raw files are in CLOCK_MONOTONIC: the difference of the two.
 *
 * Slewing moves both clocks alike, so the difference is constant until somebody steps CLOCK_REALTIME. Every
 * sample is an interval that surely contains it; their intersection is the answer, and an empty intersection
 * is a step.
 */
#ifndef LIB_CLOCK_OFFSET_H
#define LIB_CLOCK_OFFSET_H

#include <stdbool.h>
#include <stdint.h>

struct clock_offset {
	int64_t realtime_minus_mono_ns; /* the answer */
	int64_t low_ns, high_ns;	/* it is within, since the last step */
	int64_t first_ns;		/* what it was before the first step; valid if steps > 0 */
	uint64_t samples;
	uint64_t steps;
	uint64_t max_step_ns;
};

/* Settles the answer with enough samples for a few ns: within 0.1 ms. */
void clock_offset_open(struct clock_offset *clock);

/* Takes one sample; true: CLOCK_REALTIME was stepped since the last one, stamps between the two are in doubt.
 */
bool clock_offset_sample(struct clock_offset *clock);

/* The step of clock_sample with its sample given: realtime was read between mono_before and mono_after. */
bool clock_offset_narrow(struct clock_offset *clock, int64_t mono_before_ns, int64_t realtime_ns,
			 int64_t mono_after_ns);

static inline int64_t clock_offset_first_ns(const struct clock_offset *clock)
{
	return clock->steps ? clock->first_ns : clock->realtime_minus_mono_ns;
}

#endif
