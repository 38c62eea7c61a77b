/* SPDX-License-Identifier: MIT
 * How late a traffic program sends: time from the due time to the send, or to its return. Bucket k counts up to 2^k ns.
 */
#ifndef TRAFFIC_SEND_LATENESS_H
#define TRAFFIC_SEND_LATENESS_H

#include <stdint.h>
#include <stdio.h>

enum { LATENESS_BUCKETS = 64 };

struct send_lateness {
	uint64_t counts[LATENESS_BUCKETS];
	uint64_t max_ns;
};

void send_lateness_count(struct send_lateness *lateness, uint64_t ns);

/* The buckets that are not empty, as JSON: [[up to ns, count], ...]. */
void send_lateness_print(FILE *file, const struct send_lateness *lateness);

#endif
