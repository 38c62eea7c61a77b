/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The captured packet in C: the struct's layout is the format.
 */
#ifndef WIRE_CAPTURED_PACKET_H
#define WIRE_CAPTURED_PACKET_H

#define RECORD_DEF   "captured_packet.def"
#define RECORD	     captured_packet
#define RECORD_BYTES CAPTURED_PACKET_BYTES
#include "record_struct.h"

#endif
