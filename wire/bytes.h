/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Reads and writes integers of 1 to 16 bytes (put_le: 1 to 8). The caller guarantees that the buffer is long enough.
 */
#ifndef WIRE_BYTES_H
#define WIRE_BYTES_H

#include <stdint.h>

typedef uint64_t uint48_t;
typedef unsigned __int128 uint128_t;

static inline uint128_t take_be(const uint8_t **at, unsigned bytes)
{
	uint128_t value = 0;

	while (bytes--)
		value = value << 8 | *(*at)++;
	return value;
}

static inline void put_be(uint8_t **at, uint128_t value, unsigned bytes)
{
	while (bytes--)
		*(*at)++ = (uint8_t)(value >> 8 * bytes);
}

static inline void put_le(uint8_t **at, uint64_t value, unsigned bytes)
{
	for (; bytes--; value >>= 8)
		*(*at)++ = (uint8_t)value;
}

#endif
