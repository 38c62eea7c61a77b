/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Meters of compiled P4: two token buckets, as in simple_switch (RFC 4115 without the colour of the packet). Rates are
 * bytes or packets a second.
 */
#ifndef SOFTSWITCH_P4_METER_H
#define SOFTSWITCH_P4_METER_H

#include "p4_types.h"

/* Larger rates overflow the product of a second and a rate. */
#define P4_METER_MAX_RATE  10000000000ull
#define P4_METER_MAX_BURST ((1ull << 62) - 1)
#define P4_SECOND_NS	   1000000000ull

enum { P4_METER_PEAK, P4_METER_COMMITTED, P4_METER_RATES };

struct p4_meter {
	bool configured; /* false: every packet is green */
	uint64_t last_ns;
	struct p4_meter_bucket {
		uint64_t per_second;
		uint64_t burst;
		uint64_t tokens;
		uint64_t carry; /* the fraction of a token, in units of 10^-9 */
	} buckets[P4_METER_RATES];
};

_Static_assert(sizeof(struct p4_meter) == 80, "METER_BYTES in translate/tables.py");

static inline void p4_meter_fill(struct p4_meter_bucket *bucket, uint64_t elapsed_ns)
{
	uint64_t part = elapsed_ns % P4_SECOND_NS * bucket->per_second + bucket->carry;
	uint64_t seconds = elapsed_ns / P4_SECOND_NS;
	uint64_t space = bucket->burst - bucket->tokens, tokens = part / P4_SECOND_NS;

	bucket->carry = part % P4_SECOND_NS;
	/* After so many seconds the bucket is full; so the product does not overflow. */
	if (bucket->per_second && seconds > space / bucket->per_second)
		tokens = space;
	else
		tokens += seconds * bucket->per_second;
	bucket->tokens += tokens < space ? tokens : space;
}

/* 0 green, 1 yellow: above the committed rate, 2 red: above the peak rate. units: bytes, or 1 packet. */
static inline uint64_t p4_meter_color(struct p4_meter *meter, uint64_t now_ns, uint64_t units)
{
	if (!meter->configured)
		return 0;
	for (int rate = 0; rate < P4_METER_RATES; rate++)
		p4_meter_fill(&meter->buckets[rate], now_ns - meter->last_ns);
	meter->last_ns = now_ns;
	for (int rate = 0; rate < P4_METER_RATES; rate++) {
		if (meter->buckets[rate].tokens < units)
			return (uint64_t)(P4_METER_RATES - rate);
		meter->buckets[rate].tokens -= units;
	}
	return 0;
}

#endif
