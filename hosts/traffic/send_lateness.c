// SPDX-License-Identifier: MIT
#include "send_lateness.h"

#include <inttypes.h>

void send_lateness_count(struct send_lateness *lateness, uint64_t ns)
{
	lateness->counts[ns > 1 ? 64 - __builtin_clzll(ns - 1) : 0]++;
	if (ns > lateness->max_ns)
		lateness->max_ns = ns;
}

void send_lateness_print(FILE *file, const struct send_lateness *lateness)
{
	const char *comma = "";

	fputc('[', file);
	for (int bucket = 0; bucket < LATENESS_BUCKETS; bucket++) {
		if (!lateness->counts[bucket])
			continue;
		fprintf(file, "%s[%" PRIu64 ",%" PRIu64 "]", comma, (uint64_t)1 << bucket,
			lateness->counts[bucket]);
		comma = ",";
	}
	fputc(']', file);
}
