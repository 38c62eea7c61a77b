/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The flow record in C: the struct's layout is the format.
 */
#ifndef WIRE_FLOW_RECORD_H
#define WIRE_FLOW_RECORD_H

#define RECORD_DEF   "flow_record.def"
#define RECORD	     flow_record
#define RECORD_BYTES FLOW_RECORD_BYTES
#include "record_struct.h"

#endif
