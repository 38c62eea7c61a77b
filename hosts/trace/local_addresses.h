/* SPDX-License-Identifier: MIT
 * The addresses of a network namespace: how the stock trace events, which do not tell the namespace of a socket, are
 * told apart.
 */
#ifndef TRACE_LOCAL_ADDRESSES_H
#define TRACE_LOCAL_ADDRESSES_H

#include <stdbool.h>
#include <stdint.h>

enum { MAX_LOCAL_ADDRESSES = 256 };

struct local_addresses {
	uint32_t count;
	struct {
		uint64_t hi, lo;	   /* as in a TCP record */
		uint64_t hi_mask, lo_mask; /* all ones, but for loopback: all of its prefix is local */
	} address[MAX_LOCAL_ADDRESSES];
};

/* Those that the namespace at path has now. 0 or -errno after one line. */
int local_addresses_read(struct local_addresses *addresses, const char *netns_path);

bool local_addresses_have(const struct local_addresses *addresses, uint64_t hi, uint64_t lo);

#endif
