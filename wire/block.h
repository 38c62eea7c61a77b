/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The block header of raw files in C. To write a block, raw_file.c completes the struct, calls block_encode
 * with crc32 = 0, computes zlib's crc32 over these bytes and the payload, and encodes again.
 */
#ifndef WIRE_BLOCK_H
#define WIRE_BLOCK_H

#include "bytes.h"

enum {
#define CONST(name, value) name = value,
#include "block.def"
	BLOCK_HEADER_BYTES = (0
#define FIELD(bits, name) +bits
#include "block.def"
			      ) /
	8
};

struct block_header {
#define FIELD(bits, name) uint##bits##_t name;
#include "block.def"
};

#define FIELD(bits, name) _Static_assert(bits % 8 == 0 && bits <= 64, #name " is not a C integer");
#include "block.def"

static inline void block_encode(uint8_t *buffer, const struct block_header *header)
{
#define FIELD(bits, name) put_le(&buffer, header->name, bits / 8);
#include "block.def"
}

#endif
