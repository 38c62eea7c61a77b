/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Arithmetic of compiled P4: integers of up to 128 bits in C types of 64 or 128 bits, and their big-endian form in
 * frames. Loads and stores accept any alignment; the caller has checked the length.
 */
#ifndef SOFTSWITCH_P4_TYPES_H
#define SOFTSWITCH_P4_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../lib/splitmix64.h"

typedef unsigned __int128 uint128_t;
typedef __int128 int128_t;

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "loads and stores swap bytes");

#define P4_WIDE(high, low) ((uint128_t)(high) << 64 | (uint64_t)(low))

static inline uint64_t p4_load8(const uint8_t *at)
{
	return at[0];
}

static inline void p4_store8(uint8_t *at, uint64_t value)
{
	at[0] = (uint8_t)value;
}

/* p4_load16, p4_store16, ...: the sizes of C's integers. */
#define P4_INTEGER(bits)                                                                                     \
	static inline uint64_t p4_load##bits(const uint8_t *at)                                              \
	{                                                                                                    \
		uint##bits##_t value;                                                                        \
                                                                                                             \
		__builtin_memcpy(&value, at, sizeof(value));                                                 \
		return __builtin_bswap##bits(value);                                                         \
	}                                                                                                    \
                                                                                                             \
	static inline void p4_store##bits(uint8_t *at, uint64_t value)                                       \
	{                                                                                                    \
		uint##bits##_t swapped = __builtin_bswap##bits((uint##bits##_t)value);                       \
                                                                                                             \
		__builtin_memcpy(at, &swapped, sizeof(swapped));                                             \
	}

/* p4_load24, p4_store24, ...: made of a high and a low part whose sizes are defined above. */
#define P4_INTEGER_OF_PARTS(bits, high, low)                                                                 \
	static inline uint64_t p4_load##bits(const uint8_t *at)                                              \
	{                                                                                                    \
		return p4_load##high(at) << (low) | p4_load##low(at + (high) / 8);                           \
	}                                                                                                    \
                                                                                                             \
	static inline void p4_store##bits(uint8_t *at, uint64_t value)                                       \
	{                                                                                                    \
		p4_store##high(at, value >> (low));                                                          \
		p4_store##low(at + (high) / 8, value);                                                       \
	}

P4_INTEGER(16)
P4_INTEGER(32)
P4_INTEGER(64)
P4_INTEGER_OF_PARTS(24, 16, 8)
P4_INTEGER_OF_PARTS(40, 32, 8)
P4_INTEGER_OF_PARTS(48, 32, 16)
P4_INTEGER_OF_PARTS(56, 32, 24)

static inline uint128_t p4_load128(const uint8_t *at)
{
	return P4_WIDE(p4_load64(at), p4_load64(at + 8));
}

static inline void p4_store128(uint8_t *at, uint128_t value)
{
	p4_store64(at, (uint64_t)(value >> 64));
	p4_store64(at + 8, (uint64_t)value);
}

/* `bits` bits of a byte string from first_bit on. Bit 0 is the most significant bit of the first byte. */
static inline uint128_t p4_load_bits(const uint8_t *at, unsigned first_bit, unsigned bits)
{
	uint128_t value = 0;

	for (unsigned bit = first_bit; bit < first_bit + bits; bit++)
		value = value << 1 | (at[bit / 8] >> (7 - bit % 8) & 1);
	return value;
}

static inline void p4_store_bits(uint8_t *at, unsigned first_bit, unsigned bits, uint128_t value)
{
	for (unsigned bit = first_bit + bits; bit-- > first_bit; value >>= 1) {
		uint8_t mask = (uint8_t)(0x80 >> bit % 8);

		at[bit / 8] = (uint8_t)((at[bit / 8] & ~mask) | (value & 1 ? mask : 0));
	}
}

/* Shifts by the width or more: P4 gives 0 (or all sign bits); C leaves the result undefined. */
static inline uint64_t p4_shl64(uint64_t value, uint64_t bits)
{
	return bits < 64 ? value << bits : 0;
}

static inline uint128_t p4_shl128(uint128_t value, uint64_t bits)
{
	return bits < 128 ? value << bits : 0;
}

static inline uint64_t p4_shr64(uint64_t value, uint64_t bits)
{
	return bits < 64 ? value >> bits : 0;
}

static inline uint128_t p4_shr128(uint128_t value, uint64_t bits)
{
	return bits < 128 ? value >> bits : 0;
}

static inline int64_t p4_sar64(int64_t value, uint64_t bits)
{
	return value >> (bits < 64 ? bits : 63);
}

static inline int128_t p4_sar128(int128_t value, uint64_t bits)
{
	return value >> (bits < 128 ? bits : 127);
}

/* The signed value of the low `bits` bits: 1 to 64, or 1 to 128. */
static inline int64_t p4_signed64(uint64_t value, unsigned bits)
{
	return (int64_t)(value << (64 - bits)) >> (64 - bits);
}

static inline int128_t p4_signed128(uint128_t value, unsigned bits)
{
	return (int128_t)(value << (128 - bits)) >> (128 - bits);
}

static inline int64_t p4_clamp64(int64_t value, int64_t least, int64_t largest)
{
	return value < least ? least : value > largest ? largest : value;
}

static inline int128_t p4_clamp128(int128_t value, int128_t least, int128_t largest)
{
	return value < least ? least : value > largest ? largest : value;
}

/* Division by 0 gives 0. P4 does not define it; simple_switch aborts. */
static inline uint64_t p4_div64(uint64_t value, uint64_t by)
{
	return by ? value / by : 0;
}

static inline uint64_t p4_mod64(uint64_t value, uint64_t by)
{
	return by ? value % by : 0;
}

/* setInvalid: the fields keep their values, as in simple_switch. length: the packet_length that egress will see. */
static inline void p4_remove_header(bool *valid, uint32_t *length, uint32_t header_bytes)
{
	if (*valid)
		*length -= header_bytes;
	*valid = false;
}

/* P4's random(): uniform over least..largest, both included; least <= largest. The result is the high half of a product:
 * no division is needed, and the relative error of each value's probability is at most (largest - least) / 2^64.
 */
static inline uint64_t p4_random_between(uint64_t *state, uint64_t least, uint64_t largest)
{
	uint64_t span = largest - least + 1;
	uint64_t value = splitmix64(state);

	return span ? least + (uint64_t)((uint128_t)value * span >> 64) : value;
}

#endif
