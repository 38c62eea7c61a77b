/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Integers of more than 128 bits, for compiled P4. All of a program have the same size: P4_WIDE_WORDS words of 64 bits,
 * the least significant first, in two's complement. The translator chooses the size so that no result it needs is cut.
 */
#ifndef SOFTSWITCH_P4_WIDE_H
#define SOFTSWITCH_P4_WIDE_H

#include "p4_types.h"

struct p4_wide {
	uint64_t words[P4_WIDE_WORDS];
};

static inline struct p4_wide p4_wide_from(uint128_t value)
{
	return (struct p4_wide){{(uint64_t)value, (uint64_t)(value >> 64)}};
}

static inline struct p4_wide p4_wide_from_signed(int128_t value)
{
	struct p4_wide result = p4_wide_from((uint128_t)value);

	for (unsigned i = 2; i < P4_WIDE_WORDS; i++)
		result.words[i] = value < 0 ? UINT64_MAX : 0;
	return result;
}

static inline uint128_t p4_wide_low(struct p4_wide value)
{
	return P4_WIDE(value.words[1], value.words[0]);
}

static inline struct p4_wide p4_wide_not(struct p4_wide value)
{
	for (unsigned i = 0; i < P4_WIDE_WORDS; i++)
		value.words[i] = ~value.words[i];
	return value;
}

#define P4_WIDE_BITWISE(name, operator)                                                                      \
	static inline struct p4_wide p4_wide_##name(struct p4_wide a, struct p4_wide b)                      \
	{                                                                                                    \
		for (unsigned i = 0; i < P4_WIDE_WORDS; i++)                                                 \
			a.words[i] = a.words[i] operator b.words[i];                                         \
		return a;                                                                                    \
	}

P4_WIDE_BITWISE(and, &)
P4_WIDE_BITWISE(or, |)
P4_WIDE_BITWISE(xor, ^)

static inline struct p4_wide p4_wide_add(struct p4_wide a, struct p4_wide b)
{
	uint128_t sum = 0;

	for (unsigned i = 0; i < P4_WIDE_WORDS; i++) {
		sum += (uint128_t)a.words[i] + b.words[i];
		a.words[i] = (uint64_t)sum;
		sum >>= 64;
	}
	return a;
}

static inline struct p4_wide p4_wide_sub(struct p4_wide a, struct p4_wide b)
{
	return p4_wide_add(p4_wide_add(a, p4_wide_not(b)), p4_wide_from(1));
}

static inline struct p4_wide p4_wide_mul(struct p4_wide a, struct p4_wide b)
{
	struct p4_wide product = {{0}};

	for (unsigned i = 0; i < P4_WIDE_WORDS; i++) {
		uint128_t carry = 0;

		for (unsigned j = 0; i + j < P4_WIDE_WORDS; j++) {
			carry += (uint128_t)a.words[i] * b.words[j] + product.words[i + j];
			product.words[i + j] = (uint64_t)carry;
			carry >>= 64;
		}
	}
	return product;
}

static inline bool p4_wide_is_negative(struct p4_wide value)
{
	return value.words[P4_WIDE_WORDS - 1] >> 63;
}

static inline struct p4_wide p4_wide_shl(struct p4_wide value, uint64_t bits)
{
	struct p4_wide result = {{0}};

	for (uint64_t i = bits / 64; i < P4_WIDE_WORDS; i++) {
		uint64_t from = i - bits / 64;

		result.words[i] = value.words[from] << bits % 64;
		if (bits % 64 && from)
			result.words[i] |= value.words[from - 1] >> (64 - bits % 64);
	}
	return result;
}

/* Arithmetic: a negative value stays negative. */
static inline struct p4_wide p4_wide_shr(struct p4_wide value, uint64_t bits)
{
	uint64_t sign = p4_wide_is_negative(value) ? UINT64_MAX : 0;
	struct p4_wide result;

	for (uint64_t i = 0; i < P4_WIDE_WORDS; i++) {
		uint64_t from = i + bits / 64;
		uint64_t low = from < P4_WIDE_WORDS ? value.words[from] : sign;
		uint64_t high = from < P4_WIDE_WORDS - 1 ? value.words[from + 1] : sign;

		result.words[i] = bits % 64 ? low >> bits % 64 | high << (64 - bits % 64) : low;
	}
	return result;
}

/* The low `bits` bits, as an unsigned value. */
static inline struct p4_wide p4_wide_mask(struct p4_wide value, unsigned bits)
{
	for (unsigned i = bits / 64; i < P4_WIDE_WORDS; i++)
		value.words[i] &= i == bits / 64 ? ((uint64_t)1 << bits % 64) - 1 : 0;
	return value;
}

/* The same as a signed value. */
static inline struct p4_wide p4_wide_signed(struct p4_wide value, unsigned bits)
{
	return p4_wide_shr(p4_wide_shl(value, 64 * P4_WIDE_WORDS - bits), 64 * P4_WIDE_WORDS - bits);
}

/* -1, 0 or 1, as memcmp. */
static inline int p4_wide_compare(struct p4_wide a, struct p4_wide b)
{
	if (p4_wide_is_negative(a) != p4_wide_is_negative(b))
		return p4_wide_is_negative(a) ? -1 : 1;
	for (unsigned i = P4_WIDE_WORDS; i--;)
		if (a.words[i] != b.words[i])
			return a.words[i] < b.words[i] ? -1 : 1;
	return 0;
}

static inline struct p4_wide p4_wide_clamp(struct p4_wide value, struct p4_wide least, struct p4_wide largest)
{
	if (p4_wide_compare(value, least) < 0)
		return least;
	return p4_wide_compare(value, largest) > 0 ? largest : value;
}

/* As p4_load_bits and p4_store_bits. */
static inline struct p4_wide p4_wide_load(const uint8_t *at, unsigned first_bit, unsigned bits)
{
	struct p4_wide value = {{0}};

	for (unsigned done = 0; done < bits; done += 64) {
		unsigned size = bits - done < 64 ? bits - done : 64;

		value.words[done / 64] = (uint64_t)p4_load_bits(at, first_bit + bits - done - size, size);
	}
	return value;
}

static inline void p4_wide_store(uint8_t *at, unsigned first_bit, unsigned bits, struct p4_wide value)
{
	for (unsigned done = 0; done < bits; done += 64) {
		unsigned size = bits - done < 64 ? bits - done : 64;

		p4_store_bits(at, first_bit + bits - done - size, size, value.words[done / 64]);
	}
}

#endif
