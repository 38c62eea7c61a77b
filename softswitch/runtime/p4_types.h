/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * What compiled P4 computes with: integers of up to 128 bits, kept in the next larger C type, and their bytes on
 * the wire. Loads and stores take a pointer of any alignment; the caller knows that the bytes are there.
 */
#ifndef SOFTSWITCH_P4_TYPES_H
#define SOFTSWITCH_P4_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef unsigned __int128 uint128_t;
typedef __int128 int128_t;

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "loads and stores swap bytes");

#define P4_WIDE(high, low) ((uint128_t)(high) << 64 | (uint64_t)(low))

static inline uint64_t p4_load8(const uint8_t *at)
{
	return at[0];
}

static inline uint64_t p4_load16(const uint8_t *at)
{
	uint16_t value;

	__builtin_memcpy(&value, at, sizeof(value));
	return __builtin_bswap16(value);
}

static inline uint64_t p4_load32(const uint8_t *at)
{
	uint32_t value;

	__builtin_memcpy(&value, at, sizeof(value));
	return __builtin_bswap32(value);
}

static inline uint64_t p4_load64(const uint8_t *at)
{
	uint64_t value;

	__builtin_memcpy(&value, at, sizeof(value));
	return __builtin_bswap64(value);
}

static inline uint64_t p4_load24(const uint8_t *at)
{
	return p4_load16(at) << 8 | p4_load8(at + 2);
}

static inline uint64_t p4_load40(const uint8_t *at)
{
	return p4_load32(at) << 8 | p4_load8(at + 4);
}

static inline uint64_t p4_load48(const uint8_t *at)
{
	return p4_load32(at) << 16 | p4_load16(at + 4);
}

static inline uint64_t p4_load56(const uint8_t *at)
{
	return p4_load32(at) << 24 | p4_load24(at + 4);
}

static inline uint128_t p4_load128(const uint8_t *at)
{
	return P4_WIDE(p4_load64(at), p4_load64(at + 8));
}

static inline void p4_store8(uint8_t *at, uint64_t value)
{
	at[0] = (uint8_t)value;
}

static inline void p4_store16(uint8_t *at, uint64_t value)
{
	uint16_t swapped = __builtin_bswap16((uint16_t)value);

	__builtin_memcpy(at, &swapped, sizeof(swapped));
}

static inline void p4_store32(uint8_t *at, uint64_t value)
{
	uint32_t swapped = __builtin_bswap32((uint32_t)value);

	__builtin_memcpy(at, &swapped, sizeof(swapped));
}

static inline void p4_store64(uint8_t *at, uint64_t value)
{
	uint64_t swapped = __builtin_bswap64(value);

	__builtin_memcpy(at, &swapped, sizeof(swapped));
}

static inline void p4_store24(uint8_t *at, uint64_t value)
{
	p4_store16(at, value >> 8);
	p4_store8(at + 2, value);
}

static inline void p4_store40(uint8_t *at, uint64_t value)
{
	p4_store32(at, value >> 8);
	p4_store8(at + 4, value);
}

static inline void p4_store48(uint8_t *at, uint64_t value)
{
	p4_store32(at, value >> 16);
	p4_store16(at + 4, value);
}

static inline void p4_store56(uint8_t *at, uint64_t value)
{
	p4_store32(at, value >> 24);
	p4_store24(at + 4, value);
}

static inline void p4_store128(uint8_t *at, uint128_t value)
{
	p4_store64(at, (uint64_t)(value >> 64));
	p4_store64(at + 8, (uint64_t)value);
}

/* `bits` bits of a byte string, from bit 0 (the most significant of the first byte) on. */
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

/* Shifts of P4 give 0 (or all signs) from the width on, where C's are undefined. */
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

/* The signed value of the low `bits` bits, 1 to 64 (128). */
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

/* Division by 0 gives 0: P4 leaves it open, simple_switch stops. */
static inline uint64_t p4_div64(uint64_t value, uint64_t by)
{
	return by ? value / by : 0;
}

static inline uint64_t p4_mod64(uint64_t value, uint64_t by)
{
	return by ? value % by : 0;
}

/* setInvalid: the fields stay, as in simple_switch. length: what egress will see as packet_length. */
static inline void p4_remove_header(bool *valid, uint32_t *length, uint32_t header_bytes)
{
	if (*valid)
		*length -= header_bytes;
	*valid = false;
}

/* splitmix64: one word of state, any seed. For P4's random(), which asks for no more. */
static inline uint64_t p4_random64(uint64_t *state)
{
	uint64_t value = *state += 0x9e3779b97f4a7c15;

	value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
	value = (value ^ value >> 27) * 0x94d049bb133111eb;
	return value ^ value >> 31;
}

/* Uniform over least..largest, both included; least <= largest. High half of a product, so no division; the
 * bias is below (largest - least) / 2^64.
 */
static inline uint64_t p4_random_between(uint64_t *state, uint64_t least, uint64_t largest)
{
	uint64_t span = largest - least + 1;
	uint64_t value = p4_random64(state);

	return span ? least + (uint64_t)((uint128_t)value * span >> 64) : value;
}

#endif
