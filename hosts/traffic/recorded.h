/* SPDX-License-Identifier: MIT
 * Reads the packets of open-loop traffic from a file, instead of drawing them. A packet has RECORDED_BYTES there, its
 * numbers little-endian: 8 bytes ns from the start, which never decrease, 2 bytes size of the IP packet, 2 bytes number
 * of its flow from 0, 1 byte ECN field, 3 bytes 0 (analysis/whatif/departures.py writes them).
 */
#ifndef TRAFFIC_RECORDED_H
#define TRAFFIC_RECORDED_H

#include <stdio.h>

#include "schedule.h"

enum { RECORDED_BYTES = 16 };

struct recorded {
	const char *path;
	FILE *file;
	uint64_t flows, mtu_bytes; /* no packet may have another flow, or be longer */
	uint64_t count;		   /* packets */
	uint64_t latest_ns;
	bool failed; /* after one message */
};

/* 0, or -errno after one message. */
int recorded_open(struct recorded *recorded, const char *path, uint64_t flows, uint64_t mtu_bytes);
void recorded_close(struct recorded *recorded);

/* The next packet; after the last one, or a wrong one, a packet that is due at UINT64_MAX. */
struct departure recorded_next(struct recorded *recorded);

#endif
