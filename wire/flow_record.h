/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The flow record in C: the struct's layout is the format.
 */
#ifndef WIRE_FLOW_RECORD_H
#define WIRE_FLOW_RECORD_H

#include <stdint.h>

enum {
#define CONST(name, value) name = value,
#include "flow_record.def"
	FLOW_RECORD_BYTES = (0
#define FIELD(bits, name) +bits
#include "flow_record.def"
			     ) /
	8
};

struct flow_record {
#define FIELD(bits, name) uint##bits##_t name;
#include "flow_record.def"
};

_Static_assert(sizeof(struct flow_record) == FLOW_RECORD_BYTES, "struct flow_record has padding");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "raw files are little-endian");

#endif
