/* SPDX-License-Identifier: MIT
 * Sends sample postcards, for tests and to measure collectors: at the full speed of one core, or at a given rate.
 */
#ifndef COLLECTOR_GENERATOR_H
#define COLLECTOR_GENERATOR_H

#include <stdint.h>

#include "address.h"

enum method {
	METHOD_AUTO,	/* segment if the kernel supports it, else sendmmsg */
	METHOD_SEGMENT, /* UDP_SEGMENT: a batch passes the stack once; the device splits it into
			   datagrams */
	METHOD_SENDMMSG,
};

struct order {
	struct address to;
	struct address source; /* length 0: the kernel chooses */
	uint64_t count;
	uint64_t rate_per_s; /* 0: unlimited */
	uint64_t batch;	     /* datagrams per system call */
	uint64_t first_seq;
	enum method method;
};

struct delivery {
	uint64_t sent;
	uint64_t retries; /* sends repeated because the kernel had no room */
	uint64_t elapsed_ns;
	enum method method; /* the method in use */
};

enum { GENERATOR_MAX_BATCH = 64 }; /* segments per send that every kernel with UDP_SEGMENT accepts */

/* Returns 0, or -errno after one line; delivery then has the datagrams sent so far. */
int generator_send(const struct order *order, struct delivery *delivery);

#endif
