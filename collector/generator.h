/* SPDX-License-Identifier: MIT
 * Sends sample postcards for tests and for measuring collectors: as fast as one core can, or at a given rate.
 */
#ifndef COLLECTOR_GENERATOR_H
#define COLLECTOR_GENERATOR_H

#include <stdint.h>

#include "address.h"

enum method {
	METHOD_AUTO,	/* segment where the kernel can, else sendmmsg */
	METHOD_SEGMENT, /* UDP_SEGMENT: one pass through the stack for a batch, cut into datagrams at the
			   device */
	METHOD_SENDMMSG,
};

struct order {
	struct address to;
	struct address source; /* text empty: the kernel chooses */
	uint64_t count;
	uint64_t rate_per_s; /* 0: without bound */
	uint64_t batch;	     /* datagrams a system call */
	uint64_t first_seq;
	enum method method;
};

struct delivery {
	uint64_t sent;
	uint64_t retries; /* the kernel had no room for a while */
	uint64_t elapsed_ns;
	enum method method; /* used */
};

enum { GENERATOR_MAX_BATCH = 64 }; /* the kernel's limit of segments, in all versions that can segment */

/* 0 or -errno after one line; delivery says how far it came. */
int generator_send(const struct order *order, struct delivery *delivery);

#endif
