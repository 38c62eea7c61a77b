/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The CRCs process half a byte at a time, with constant tables of 16 entries that stay in the cache.
 */
#include "p4_checksum.h"

/* Entry i is the CRC of the 4 bits i, reflected: polynomial 0xa001 (0x8005). */
static const uint16_t crc16_table[16] = {
	0x0000, 0xcc01, 0xd801, 0x1400, 0xf001, 0x3c00, 0x2800, 0xe401,
	0xa001, 0x6c00, 0x7800, 0xb401, 0x5000, 0x9c01, 0x8801, 0x4400,
};

/* The same for polynomial 0xedb88320 (0x04c11db7). */
static const uint32_t crc32_table[16] = {
	0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
	0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
};

uint16_t p4_crc16(uint16_t crc, const uint8_t *at, size_t bytes)
{
	for (; bytes; bytes--) {
		crc ^= *at++;
		crc = (uint16_t)(crc16_table[crc & 15] ^ crc >> 4);
		crc = (uint16_t)(crc16_table[crc & 15] ^ crc >> 4);
	}
	return crc;
}

uint32_t p4_crc32(uint32_t crc, const uint8_t *at, size_t bytes)
{
	crc = ~crc;
	for (; bytes; bytes--) {
		crc ^= *at++;
		crc = crc32_table[crc & 15] ^ crc >> 4;
		crc = crc32_table[crc & 15] ^ crc >> 4;
	}
	return ~crc;
}

static uint32_t reflect(uint32_t value, unsigned bits)
{
	uint32_t result = 0;

	for (unsigned bit = 0; bit < bits; bit++)
		result = result << 1 | (value >> bit & 1);
	return result;
}

uint32_t p4_crc_custom(const struct p4_crc *crc, unsigned bits, uint32_t remainder, const uint8_t *at,
		       size_t bytes)
{
	uint32_t top = (uint32_t)1 << (bits - 1);

	for (; bytes; bytes--, at++) {
		remainder ^= (crc->reflect_data ? reflect(*at, 8) : *at) << (bits - 8);
		for (int bit = 0; bit < 8; bit++)
			remainder = remainder & top ? remainder << 1 ^ crc->polynomial : remainder << 1;
	}
	return remainder & (top | (top - 1));
}

uint32_t p4_crc_custom_end(const struct p4_crc *crc, unsigned bits, uint32_t remainder)
{
	return (crc->reflect_remainder ? reflect(remainder, bits) : remainder) ^ crc->final;
}

uint16_t p4_xor16(uint16_t value, size_t before, const uint8_t *at, size_t bytes)
{
	for (; bytes; bytes--, before++)
		value ^= (uint16_t)(before & 1 ? *at++ : *at++ << 8);
	return value;
}

uint64_t p4_identity(uint64_t value, size_t before, const uint8_t *at, size_t bytes)
{
	for (; bytes && before < 8; bytes--, before++)
		value = value << 8 | *at++;
	return value;
}
