/* SPDX-License-Identifier: MIT
 * Bytes per flow and interval at the receiving program, into blocks of wire/goodput_record.def. Intervals are whole
 * multiples of interval_ns on CLOCK_MONOTONIC and end by the timer, so that reading a socket needs no clock; what is
 * read while the timer is late counts for the interval that is still open.
 */
#ifndef TRAFFIC_GOODPUT_H
#define TRAFFIC_GOODPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "../trace/block_writer.h"
#include "events.h"

/* One flow. The caller sets the ports and owns it; it must stay until goodput_close. */
struct meter {
	uint16_t src_port;
	uint16_t dst_port;
	uint64_t total_bytes;
	uint64_t total_reads;
	uint64_t interval_bytes;
	uint32_t interval_reads;
	bool counted; /* in the open interval */
	struct meter *next;
};

struct goodput {
	struct events *events;
	struct block_writer writer;
	uint64_t interval_ns;
	uint64_t interval_mono_ns; /* begin of the open one; 0: nothing comes, no timer runs */
	uint64_t flushed_mono_ns;
	struct meter *first; /* those counted in the open interval */
	struct meter **last;
	uint64_t late_intervals;  /* that ended later than the next one should have */
	uint64_t lateness_max_ns; /* of an interval's end */
};

/* 0, or -errno after one line. */
int goodput_open(struct goodput *goodput, struct events *events, uint64_t interval_ns, const char *path);

void goodput_count(struct goodput *goodput, struct meter *meter, uint64_t bytes, uint32_t reads);

/* The moment that goodput armed has come. */
void goodput_moment(struct goodput *goodput);

/* Writes the open interval and closes the file. 0, or -EIO when anything is missing from it. */
int goodput_close(struct goodput *goodput);

/* The counters, as members of a JSON object. */
void goodput_print(FILE *file, const struct goodput *goodput);

#endif
