/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Header stacks of compiled P4: arrays of header structs, each of which starts with its `bool valid`. `next` is the
 * index that the parser extracts next. Headers move as in simple_switch: by exchanges, so an invalid header keeps the
 * fields of a header that left the stack.
 */
#ifndef SOFTSWITCH_P4_STACKS_H
#define SOFTSWITCH_P4_STACKS_H

#include "p4_types.h"

/* The index of the last extracted header. In an empty stack there is none: the first. */
static inline uint32_t p4_last(uint32_t next)
{
	return next ? next - 1 : 0;
}

/* An index that the program computes, cut to the stack's size: simple_switch ends at an index beyond it. */
static inline uint32_t p4_element(uint64_t index, uint32_t size)
{
	return index < size ? (uint32_t)index : size - 1;
}

static inline void p4_exchange(uint8_t *a, uint8_t *b, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		uint8_t kept = a[i];

		a[i] = b[i];
		b[i] = kept;
	}
}

/* Moves all headers `count` places to the end; the first `count` become invalid. */
static inline void p4_push_front(void *stack, size_t header_bytes, uint32_t size, uint32_t *next,
				 uint32_t count)
{
	uint8_t *at = stack;

	if (count > size)
		count = size;
	*next = *next + count < size ? *next + count : size;
	for (uint32_t i = size; i-- > count;)
		p4_exchange(at + i * header_bytes, at + (i - count) * header_bytes, header_bytes);
	for (uint32_t i = 0; i < count; i++)
		*(bool *)(at + i * header_bytes) = false;
}

/* Moves all headers `count` places to the front; the last `count` become invalid. */
static inline void p4_pop_front(void *stack, size_t header_bytes, uint32_t size, uint32_t *next,
				uint32_t count)
{
	uint8_t *at = stack;

	if (count > size)
		count = size;
	*next -= *next < count ? *next : count;
	for (uint32_t i = 0; i < size - count; i++)
		p4_exchange(at + i * header_bytes, at + (i + count) * header_bytes, header_bytes);
	for (uint32_t i = size - count; i < size; i++)
		*(bool *)(at + i * header_bytes) = false;
}

#endif
