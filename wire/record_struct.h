/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Declares a record as a C struct whose layout is the format. RECORD_DEF lists the record's fields, RECORD is the
 * struct's name, and RECORD_BYTES is the name of its length. flow_record.h, goodput_record.h and tcp_record.h each
 * define all three, then include this file once. BPF programs have the kernel's __uN types instead of stdint.h.
 */
#if defined(__KERNEL__)
#include <linux/types.h>
#elif !defined(__bpf__)
#include <stdint.h>
#endif

#ifdef __bpf__
#define WIRE_UINT(bits) __u##bits
#else
#define WIRE_UINT(bits) uint##bits##_t
#endif

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
#define FIELD(bits, name) WIRE_UINT(bits) name;
#include RECORD_DEF
};

_Static_assert(sizeof(struct RECORD) == RECORD_BYTES, "the struct of a record has padding");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "raw files are little-endian");

#undef WIRE_UINT
#undef RECORD_DEF
#undef RECORD
#undef RECORD_BYTES
