/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Declares a record as a C struct whose layout is the format. RECORD_DEF lists the record's fields, RECORD is the
 * struct's name, and RECORD_BYTES is the name of its length. flow_record.h and goodput_record.h each define
 * all three, then include this file once.
 */
#include <stdint.h>

enum {
#define CONST(name, value) name = value,
#include RECORD_DEF
	RECORD_BYTES = (0
#define FIELD(bits, name) +bits
#include RECORD_DEF
			) /
	8
};

struct RECORD {
#define FIELD(bits, name) uint##bits##_t name;
#include RECORD_DEF
};

_Static_assert(sizeof(struct RECORD) == RECORD_BYTES, "the struct of a record has padding");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "raw files are little-endian");

#undef RECORD_DEF
#undef RECORD
#undef RECORD_BYTES
