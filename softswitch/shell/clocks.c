/* SPDX-License-Identifier: MIT
 * The kernel stamps frames in CLOCK_REALTIME; virtual time is CLOCK_MONOTONIC. The offset between the two is
 * sampled through the run: a slew is followed, a step is counted, because frames stamped around it have wrong
 * times.
 */
#include "shell.h"

enum {
	SAMPLE_EVERY_NS = 1000000,
	SAMPLE_TRIES = 4,
	SAMPLE_GOOD_NS = 2000,	 /* two clocks read within this time: good enough */
	STEP_NS = 100000,	 /* adjtimex slews by at most 500 ppm, so this is a step... */
	SLEW_PER_MILLION = 1000, /* ...if it is also more than twice that slew since the last sample */
};

/* Of a few readings the one least torn by preemption. */
static int64_t read_offset(uint64_t *width_ns)
{
	int64_t offset = 0;

	*width_ns = UINT64_MAX;
	for (int tries = 0; tries < SAMPLE_TRIES && *width_ns > SAMPLE_GOOD_NS; tries++) {
		uint64_t before_ns = clock_ns(CLOCK_MONOTONIC);
		uint64_t realtime_ns = clock_ns(CLOCK_REALTIME);
		uint64_t after_ns = clock_ns(CLOCK_MONOTONIC);

		if (after_ns - before_ns < *width_ns) {
			*width_ns = after_ns - before_ns;
			offset = (int64_t)(realtime_ns - before_ns - (after_ns - before_ns) / 2);
		}
	}
	return offset;
}

void clocks_sample(struct clocks *clocks, uint64_t mono_ns)
{
	uint64_t elapsed_ns = mono_ns - clocks->sampled_mono_ns;
	uint64_t width_ns, change_ns;
	int64_t offset;

	if (clocks->sampled_mono_ns && elapsed_ns < SAMPLE_EVERY_NS)
		return;
	offset = read_offset(&width_ns);
	if (clocks->sampled_mono_ns) {
		change_ns = (uint64_t)(offset > clocks->realtime_minus_mono_ns
					       ? offset - clocks->realtime_minus_mono_ns
					       : clocks->realtime_minus_mono_ns - offset);
		if (change_ns > clocks->step_max_ns)
			clocks->step_max_ns = change_ns;
		if (change_ns > STEP_NS + width_ns + elapsed_ns / 1000000 * SLEW_PER_MILLION)
			clocks->steps++;
	}
	clocks->realtime_minus_mono_ns = offset;
	clocks->sampled_mono_ns = mono_ns;
}

uint64_t clocks_mono_of_realtime(const struct clocks *clocks, uint64_t realtime_ns)
{
	return realtime_ns - (uint64_t)clocks->realtime_minus_mono_ns;
}
