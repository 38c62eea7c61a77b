/* SPDX-License-Identifier: MIT
 * Addresses as TCP records and flow records have them: an IPv6 or IPv4-mapped address in two halves, each as a number.
 */
#ifndef TRACE_ADDRESS_H
#define TRACE_ADDRESS_H

#include <endian.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t address_half(const uint8_t *at)
{
	uint64_t half;

	memcpy(&half, at, sizeof(half));
	return be64toh(half);
}

/* Reads a struct sockaddr_in or sockaddr_in6. IPv4: the upper half of *lo becomes `mapped`, and *hi is unchanged.
 * False: another address family.
 */
static inline bool address_read(const void *address, uint32_t mapped, uint64_t *hi, uint64_t *lo)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	sa_family_t family;

	memcpy(&family, address, sizeof(family));
	if (family == AF_INET) {
		memcpy(&v4, address, sizeof(v4));
		*lo = (uint64_t)mapped << 32 | ntohl(v4.sin_addr.s_addr);
	} else if (family == AF_INET6) {
		memcpy(&v6, address, sizeof(v6));
		*hi = address_half(v6.sin6_addr.s6_addr);
		*lo = address_half(v6.sin6_addr.s6_addr + 8);
	}
	return family == AF_INET || family == AF_INET6;
}

#endif
