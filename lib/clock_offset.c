// SPDX-License-Identifier: MIT
// Samples of CLOCK_REALTIME - CLOCK_MONOTONIC, kept as the intersection of intervals.
#include "clock_offset.h"

#include <stdlib.h>

#include "clock_ns.h"

enum { FIRST_SAMPLES = 1000 };

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void begin(struct clock_offset *offset, int64_t low_ns, int64_t high_ns)
{
	offset->low_ns = low_ns;
	offset->high_ns = high_ns;
	offset->realtime_minus_mono_ns = low_ns + (high_ns - low_ns) / 2;
}

bool clock_offset_narrow(struct clock_offset *offset, int64_t mono_before_ns, int64_t realtime_ns,
			 int64_t mono_after_ns)
{
	int64_t low_ns = realtime_ns - mono_after_ns;
	int64_t high_ns = realtime_ns - mono_before_ns;
	int64_t old_ns = offset->realtime_minus_mono_ns;
	uint64_t step_ns;

	if (!offset->samples++) {
		begin(offset, low_ns, high_ns);
		return false;
	}
	if (low_ns <= offset->high_ns && high_ns >= offset->low_ns) {
		offset->low_ns = larger(low_ns, offset->low_ns);
		offset->high_ns = smaller(high_ns, offset->high_ns);
		offset->realtime_minus_mono_ns = smaller(larger(old_ns, offset->low_ns), offset->high_ns);
		return false;
	}

	if (!offset->steps++)
		offset->first_ns = old_ns;
	begin(offset, low_ns, high_ns);
	step_ns = (uint64_t)llabs(offset->realtime_minus_mono_ns - old_ns);
	if (step_ns > offset->max_step_ns)
		offset->max_step_ns = step_ns;
	return true;
}

bool clock_offset_sample(struct clock_offset *offset)
{
	int64_t mono_before_ns = (int64_t)clock_ns(CLOCK_MONOTONIC);
	int64_t realtime_ns = (int64_t)clock_ns(CLOCK_REALTIME);

	return clock_offset_narrow(offset, mono_before_ns, realtime_ns, (int64_t)clock_ns(CLOCK_MONOTONIC));
}

void clock_offset_open(struct clock_offset *offset)
{
	*offset = (struct clock_offset){0};
	for (int sample = 0; sample < FIRST_SAMPLES; sample++)
		clock_offset_sample(offset);
	begin(offset, offset->low_ns, offset->high_ns);
}
