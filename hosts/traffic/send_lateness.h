/* SPDX-License-Identifier: MIT
 * Histogram of the lateness of a traffic program's sends. In tcp_flows the lateness is the time from a finite flow's
 * due time to its SYN, in open_loop from a datagram's due time to the return of the send call.
 * Bucket k counts latenesses above 2^(k - 1) ns and up to 2^k ns; bucket 0 counts those up to 1 ns.
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
