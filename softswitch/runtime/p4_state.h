/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Registers and counters of a P4 program, and what the control plane must know of them. The values themselves are
 * arrays in struct pipeline, of the smallest C integer that holds one.
 */
#ifndef SOFTSWITCH_P4_STATE_H
#define SOFTSWITCH_P4_STATE_H

#include "p4_tables.h"

struct p4_counter {
	uint64_t packets;
	uint64_t bytes; /* of frames as they came in: headers that the program adds do not count */
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
	uint32_t table; /* direct: the table whose rows it counts, + 1; else 0 */
	size_t offset;	/* of element 0 in struct pipeline; unused when direct */
};

struct p4_program_info {
	const struct p4_table_info *const *tables;
	const struct p4_register_info *registers;
	const struct p4_counter_info *counters;
	uint32_t table_count;
	uint32_t register_count;
	uint32_t counter_count;
	size_t random_offset; /* of the uint64_t that seeds random() */
};

/* An index out of range counts nothing, reads nothing (the destination stays) and writes nothing, as simple_switch
 * built for debugging does.
 */
static inline void p4_count(struct p4_counter *counters, uint32_t size, uint64_t index, uint64_t bytes)
{
	if (index < size) {
		counters[index].packets++;
		counters[index].bytes += bytes;
	}
}

#endif
