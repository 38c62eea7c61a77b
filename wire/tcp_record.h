/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The TCP record in C: BPF fills the struct in place and tcp.bst stores it unchanged, so the layout is the format.
 * BPF programs and kernel code include this file, too.
 */
#ifndef WIRE_TCP_RECORD_H
#define WIRE_TCP_RECORD_H

#define RECORD_DEF   "tcp_record.def"
#define RECORD	     tcp_record
#define RECORD_BYTES TCP_RECORD_BYTES
#include "record_struct.h"

/* Field numbers. Bit N of unknown_fields stands for field N. */
enum {
#define FIELD(bits, name) TCP_FIELD_##name,
#include "tcp_record.def"
	TCP_FIELDS
};

#endif
