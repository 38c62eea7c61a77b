// SPDX-License-Identifier: MIT
// Samples of CLOCK_REALTIME - CLOCK_MONOTONIC, kept as the intersection of intervals.
#include "clock_offset.h"

#include <stdlib.h>

#include "clock_ns.h"

enum { FIRST_SAMPLES = 1000 };

static int64_t larger(int64_t one, int64_t other)
{
	return one > other ? one : other;
}

static int64_t smaller(int64_t one, int64_t other)
{
	return one < other ? one : other;
}

static void begin(struct clock_offset *clock, int64_t low_ns, int64_t high_ns)
{
	clock->low_ns = low_ns;
	clock->high_ns = high_ns;
	clock->realtime_minus_mono_ns = low_ns + (high_ns - low_ns) / 2;
}

bool clock_offset_narrow(struct clock_offset *clock, int64_t mono_before_ns, int64_t realtime_ns,
			 int64_t mono_after_ns)
{
	int64_t low_ns = realtime_ns - mono_after_ns;
	int64_t high_ns = realtime_ns - mono_before_ns;
	int64_t before_ns = clock->realtime_minus_mono_ns;
	uint64_t step_ns;

	if (!clock->samples++) {
		begin(clock, low_ns, high_ns);
		return false;
	}
	if (low_ns <= clock->high_ns && high_ns >= clock->low_ns) {
		clock->low_ns = larger(low_ns, clock->low_ns);
		clock->high_ns = smaller(high_ns, clock->high_ns);
		clock->realtime_minus_mono_ns = smaller(larger(before_ns, clock->low_ns), clock->high_ns);
		return false;
	}

	if (!clock->steps++)
		clock->first_ns = before_ns;
	begin(clock, low_ns, high_ns);
	step_ns = (uint64_t)llabs(clock->realtime_minus_mono_ns - before_ns);
	if (step_ns > clock->max_step_ns)
		clock->max_step_ns = step_ns;
	return true;
}

bool clock_offset_sample(struct clock_offset *clock)
{
	int64_t mono_before_ns = (int64_t)clock_ns(CLOCK_MONOTONIC);
	int64_t realtime_ns = (int64_t)clock_ns(CLOCK_REALTIME);

	return clock_offset_narrow(clock, mono_before_ns, realtime_ns, (int64_t)clock_ns(CLOCK_MONOTONIC));
}

void clock_offset_open(struct clock_offset *clock)
{
	*clock = (struct clock_offset){0};
	for (int sample = 0; sample < FIRST_SAMPLES; sample++)
		clock_offset_sample(clock);
	begin(clock, clock->low_ns, clock->high_ns);
}
