/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The postcard in C: a struct in host byte order, encoded field by field.
 */
#ifndef WIRE_POSTCARD_H
#define WIRE_POSTCARD_H

#include "bytes.h"

enum {
#define CONST(name, value) name = value,
#include "postcard.def"
	POSTCARD_BYTES = (0
#define FIELD(bits, name) +bits
#include "postcard.def"
			  ) /
	8
};

struct postcard {
#define FIELD(bits, name) uint##bits##_t name;
#include "postcard.def"
};

#define FIELD(bits, name) _Static_assert(bits % 8 == 0, #name " is not whole bytes");
#include "postcard.def"

/* To read a few fields without decoding all: offsetof(struct postcard_layout, field). All members are bytes, so there is
 * no padding.
 */
struct postcard_layout {
#define FIELD(bits, name) uint8_t name[bits / 8];
#include "postcard.def"
};
_Static_assert(sizeof(struct postcard_layout) == POSTCARD_BYTES, "the layout has padding");

/* buffer holds at least POSTCARD_BYTES. */
static inline void postcard_encode(uint8_t *buffer, const struct postcard *card)
{
#define FIELD(bits, name) put_be(&buffer, card->name, bits / 8);
#include "postcard.def"
}

#endif
