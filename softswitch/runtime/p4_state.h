/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Registers and counters of a P4 program, and their descriptions for the control plane. The values are arrays in
 * struct pipeline; an element has the smallest C integer type that fits.
 */
#ifndef SOFTSWITCH_P4_STATE_H
#define SOFTSWITCH_P4_STATE_H

#include "p4_checksum.h"
#include "p4_meter.h"
#include "p4_tables.h"

struct p4_counter {
	uint64_t packets;
	uint64_t bytes; /* of received frames: headers that the program adds do not count */
};

struct p4_register_info {
	const char *name;
	uint16_t bits;
	uint16_t element_bytes;
	uint32_t size;
	size_t offset;	/* of element 0 in struct pipeline */
	bool read_only; /* the switch fills it */
};

struct p4_counter_info {
	const char *name;
	uint32_t size;
	uint32_t table; /* direct counter: index of its table + 1; else 0 */
	size_t offset;	/* of element 0 in struct pipeline; unused in a direct counter */
};

struct p4_meter_info {
	const char *name;
	uint32_t size;
	uint32_t table; /* direct meter: index of its table + 1; else 0 */
	size_t offset;	/* of element 0 in struct pipeline; of the meter in its row, if direct */
};

struct p4_crc_info {
	const char *name;
	uint32_t bits;
	size_t offset; /* of its struct p4_crc in struct pipeline */
};

struct p4_program_info {
	const struct p4_table_info *const *tables;
	const struct p4_register_info *registers;
	const struct p4_counter_info *counters;
	const struct p4_meter_info *meters;
	const struct p4_crc_info *crcs;
	uint32_t table_count;
	uint32_t register_count;
	uint32_t counter_count;
	uint32_t meter_count;
	uint32_t crc_count;
	size_t random_offset; /* of the uint64_t state of random(), in struct pipeline */
};

/* As in a debug build of simple_switch, an index out of range is ignored: nothing is counted or written, and a read
 * leaves its destination unchanged.
 */
static inline void p4_count(struct p4_counter *counters, uint32_t size, uint64_t index, uint64_t bytes)
{
	if (index < size) {
		counters[index].packets++;
		counters[index].bytes += bytes;
	}
}

#endif
