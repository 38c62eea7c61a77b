/* SPDX-License-Identifier: MIT
 * The addresses of a network namespace. Stock trace events lack the socket's namespace, so the tracer selects events by
 * the socket's local address.
 */
#ifndef TRACE_LOCAL_ADDRESSES_H
#define TRACE_LOCAL_ADDRESSES_H

#include <stdbool.h>
#include <stdint.h>

enum { MAX_LOCAL_ADDRESSES = 1280 };

struct local_addresses {
	uint32_t count;
	struct {
		uint64_t hi, lo;	   /* as in a TCP record */
		uint64_t hi_mask, lo_mask; /* all ones, except on loopback: its whole prefix is local */
	} address[MAX_LOCAL_ADDRESSES];
};

/* Reads the current addresses of the namespace at path. 0 or -errno after one message. */
int local_addresses_read(struct local_addresses *addresses, const char *netns_path);

bool local_addresses_have(const struct local_addresses *addresses, uint64_t hi, uint64_t lo);

#endif
