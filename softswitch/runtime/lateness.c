/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * See lateness.h.
 */
#include "lateness.h"
#include "freestanding.h"

static uint32_t bucket_of(uint64_t ns)
{
	uint32_t bits = ns ? 64 - (uint32_t)__builtin_clzll(ns) : 0;
	uint32_t shift;

	if (bits <= LATENESS_SUB_BITS)
		return (uint32_t)ns;
	if (bits > LATENESS_MAX_BITS)
		return LATENESS_BUCKETS - 1;
	shift = bits - LATENESS_SUB_BITS - 1;
	return ((shift + 1) << LATENESS_SUB_BITS) + (uint32_t)(ns >> shift) - (1u << LATENESS_SUB_BITS);
}

uint64_t lateness_edge_ns(uint32_t bucket)
{
	uint32_t shift = bucket >> LATENESS_SUB_BITS;
	uint64_t mantissa = bucket & ((1u << LATENESS_SUB_BITS) - 1);

	if (!shift)
		return mantissa;
	mantissa += 1u << LATENESS_SUB_BITS;
	return ((mantissa + 1) << (shift - 1)) - 1;
}

void lateness_count(struct lateness *lateness, uint64_t due_ns, uint64_t real_ns, bool back_to_back)
{
	if (!lateness->departures++) {
		lateness->first_due_ns = due_ns;
		lateness->first_real_ns = real_ns;
	}
	lateness->buckets[bucket_of(real_ns > due_ns ? real_ns - due_ns : 0)]++;
	if (back_to_back && lateness->last_real_ns && due_ns > lateness->last_due_ns) {
		uint64_t ideal_ns = due_ns - lateness->last_due_ns;
		uint64_t gap_ns = real_ns - lateness->last_real_ns;
		uint64_t error_ns = gap_ns > ideal_ns ? gap_ns - ideal_ns : ideal_ns - gap_ns;

		lateness->gap_frames++;
		lateness->gap_errors += error_ns * 10 > ideal_ns;
		if (error_ns > lateness->gap_error_max_ns)
			lateness->gap_error_max_ns = error_ns;
	}
	lateness->last_due_ns = due_ns;
	lateness->last_real_ns = real_ns;
	/* The span runs from the first to the last due time. A sum over busy periods would add the late wake-up at the
	 * end of each period to the error of the rate. Outputs are sorted by due time. Shortening a flow's delay
	 * during a run can make a later output due before the first; the span is then 0. */
	lateness->virtual_span_ns = due_ns > lateness->first_due_ns ? due_ns - lateness->first_due_ns : 0;
	lateness->real_span_ns = real_ns - lateness->first_real_ns;
}

void lateness_reset(struct lateness *lateness)
{
	memset(lateness, 0, sizeof(*lateness));
}
