/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * A connection of a capture in C: the struct's layout is the format.
 */
#ifndef WIRE_CONNECTION_H
#define WIRE_CONNECTION_H

#define RECORD_DEF   "connection.def"
#define RECORD	     connection
#define RECORD_BYTES CONNECTION_BYTES
#include "record_struct.h"

#endif
