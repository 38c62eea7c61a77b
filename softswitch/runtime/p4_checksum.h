/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * v1model's hash algorithms except `random`, as simple_switch computes them. Each is incremental (start, any number of
 * adds, end), because headers and payload are separate buffers.
 */
#ifndef SOFTSWITCH_P4_CHECKSUM_H
#define SOFTSWITCH_P4_CHECKSUM_H

#include "p4_types.h"

/* bytes: the number of bytes so far. A piece may start at an odd offset. */
struct p4_csum16 {
	uint64_t sum;
	size_t bytes;
};

static inline void p4_csum16_add(struct p4_csum16 *state, const uint8_t *at, size_t bytes)
{
	const uint8_t *end = at + bytes;

	if (bytes && state->bytes & 1)
		state->sum += *at++;
	/* 2^16 is 1 modulo 2^16 - 1, so words of 32 bits have the same sum. */
	for (; end - at >= 8; at += 8) {
		uint64_t words = p4_load64(at);

		state->sum += (words >> 32) + (uint32_t)words;
	}
	for (; end - at >= 2; at += 2)
		state->sum += p4_load16(at);
	if (at < end)
		state->sum += (uint64_t)*at << 8;
	state->bytes += bytes;
}

/* RFC 1071: an odd last byte is padded with 0. */
static inline uint16_t p4_csum16_end(const struct p4_csum16 *state)
{
	uint64_t sum = state->sum;

	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* crc: 0 at the start. CRC-16/ARC: polynomial 0x8005, reflected. */
uint16_t p4_crc16(uint16_t crc, const uint8_t *at, size_t bytes);

/* crc: 0 at the start. CRC-32/ISO-HDLC, as in zlib and Ethernet. */
uint32_t p4_crc32(uint32_t crc, const uint8_t *at, size_t bytes);

/* A CRC whose parameters requests can set: crc16_custom and crc32_custom. */
struct p4_crc {
	uint32_t polynomial; /* without its highest term */
	uint32_t initial;
	uint32_t final; /* exclusive or */
	bool reflect_data;
	bool reflect_remainder;
};

/* bits: 16 or 32. remainder: initial at the start. Bit by bit: the parameters can change at any time. */
uint32_t p4_crc_custom(const struct p4_crc *crc, unsigned bits, uint32_t remainder, const uint8_t *at,
		       size_t bytes);
uint32_t p4_crc_custom_end(const struct p4_crc *crc, unsigned bits, uint32_t remainder);

/* The exclusive or of 16-bit words. before: number of bytes so far. */
uint16_t p4_xor16(uint16_t value, size_t before, const uint8_t *at, size_t bytes);

/* The first 8 bytes (or all, if there are fewer) as a big-endian number. before: number of bytes so far. */
uint64_t p4_identity(uint64_t value, size_t before, const uint8_t *at, size_t bytes);

#endif
