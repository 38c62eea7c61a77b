/* SPDX-License-Identifier: MIT
 * Counts bytes per flow and interval at the receiving program, as records of wire/goodput_record.def. Intervals
 * start at multiples of interval_ns on CLOCK_MONOTONIC. A timer ends each interval, so only the first read after an
 * idle interval needs the clock. Bytes that are read while the timer is late count for the open interval.
 */
#ifndef TRAFFIC_GOODPUT_H
#define TRAFFIC_GOODPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "../trace/block_writer.h"
#include "events.h"

/* One flow. The caller sets the ports and owns the meter, which must live until goodput_close. */
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
	uint64_t interval_mono_ns; /* start of the open interval; 0: idle, no timer runs */
	uint64_t flushed_mono_ns;
	struct meter *first; /* list of the flows that received data in the open interval */
	struct meter **last;
	uint64_t late_intervals;  /* intervals that ended after the next interval's due end */
	uint64_t lateness_max_ns; /* of an interval's end */
};

/* Creates the file. 0, or -errno after one message. */
int goodput_open(struct goodput *goodput, struct events *events, uint64_t interval_ns, const char *path);

void goodput_count(struct goodput *goodput, struct meter *meter, uint64_t bytes, uint32_t reads);

/* Call when the timer has expired: ends the open interval. */
void goodput_timer(struct goodput *goodput);

/* Writes the open interval and closes the file. 0, or -EIO if the file lacks a record or could not be synced. */
int goodput_close(struct goodput *goodput);

/* The counters, as members of a JSON object. */
void goodput_print(FILE *file, const struct goodput *goodput);

#endif
