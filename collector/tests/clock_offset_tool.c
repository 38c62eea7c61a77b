// SPDX-License-Identifier: MIT
// lib/clock_offset.c as a filter. Each line of stdin is a sample: mono before, realtime, mono after, in ns. Each line
// of stdout is the state after that sample: stepped, offset, first offset, samples, steps, greatest step.
#include <inttypes.h>
#include <stdio.h>

#include "lib/clock_offset.h"

int main(void)
{
	struct clock_offset clock = {0};
	int64_t before_ns, realtime_ns, after_ns;
	bool stepped;

	while (scanf("%" SCNd64 " %" SCNd64 " %" SCNd64, &before_ns, &realtime_ns, &after_ns) == 3) {
		stepped = clock_offset_narrow(&clock, before_ns, realtime_ns, after_ns);
		printf("%d %" PRId64 " %" PRId64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", stepped,
		       clock.realtime_minus_mono_ns, clock_offset_first_ns(&clock), clock.samples,
		       clock.steps, clock.max_step_ns);
	}
	return 0;
}
