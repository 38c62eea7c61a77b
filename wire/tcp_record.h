/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The TCP record in C: BPF fills the struct in place and tcp.bst stores it unchanged, so the layout is the format.
 * BPF programs and kernel code include this file, too; BPF programs have the kernel's __uN types instead of stdint.h.
 */
#ifndef WIRE_TCP_RECORD_H
#define WIRE_TCP_RECORD_H

#if defined(__KERNEL__)
#include <linux/types.h>
#elif !defined(__bpf__)
#include <stdint.h>
#endif

enum {
#define CONST(name, value) name = value,
#include "tcp_record.def"
	TCP_RECORD_BYTES = (0
#define FIELD(bits, name) +bits
#include "tcp_record.def"
			    ) /
	8
};

/* Field numbers. Bit N of unknown_fields stands for field N. */
enum {
#define FIELD(bits, name) TCP_FIELD_##name,
#include "tcp_record.def"
	TCP_FIELDS
};

#ifdef __bpf__
#define WIRE_UINT(bits) __u##bits
#else
#define WIRE_UINT(bits) uint##bits##_t
#endif

struct tcp_record {
#define FIELD(bits, name) WIRE_UINT(bits) name;
#include "tcp_record.def"
};

#undef WIRE_UINT

_Static_assert(sizeof(struct tcp_record) == TCP_RECORD_BYTES, "struct tcp_record has padding");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "raw files are little-endian");

#endif
