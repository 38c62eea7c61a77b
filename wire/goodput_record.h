/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The goodput record in C: the struct's layout is the format.
 */
#ifndef WIRE_GOODPUT_RECORD_H
#define WIRE_GOODPUT_RECORD_H

#include <stdint.h>

enum {
#define CONST(name, value) name = value,
#include "goodput_record.def"
	GOODPUT_RECORD_BYTES = (0
#define FIELD(bits, name) +bits
#include "goodput_record.def"
				) /
	8
};

struct goodput_record {
#define FIELD(bits, name) uint##bits##_t name;
#include "goodput_record.def"
};

_Static_assert(sizeof(struct goodput_record) == GOODPUT_RECORD_BYTES, "struct goodput_record has padding");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "raw files are little-endian");

#endif
