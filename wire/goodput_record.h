/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The goodput record in C: the struct's layout is the format.
 */
#ifndef WIRE_GOODPUT_RECORD_H
#define WIRE_GOODPUT_RECORD_H

#define RECORD_DEF   "goodput_record.def"
#define RECORD	     goodput_record
#define RECORD_BYTES GOODPUT_RECORD_BYTES
#include "record_struct.h"

#endif
