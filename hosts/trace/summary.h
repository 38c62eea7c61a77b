/* SPDX-License-Identifier: MIT
 * Reports the counters of a trace: status lines while it runs, JSON at the end.
 */
#ifndef TRACE_SUMMARY_H
#define TRACE_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "block_writer.h"
#include "segments.h"
#include "source.h"

struct account {
	const struct source *source;
	const struct block_writer *writer;
	struct segments segments; /* the kernel's count for the namespace during the trace */
	uint64_t user_ns;	  /* CPU time of this process since the trace began */
	uint64_t first_mono_ns, last_mono_ns;
};

/* The summary is written to a partial file and renamed, so it is complete or absent. summary_open makes the partial
 * file (0 or -errno after one message); summary_commit fills and renames it.
 */
struct summary {
	const char *path;
	char partial[4096];
	FILE *file;
};

int summary_open(struct summary *summary, const char *path);
int summary_commit(struct summary *summary, const struct account *account);
void summary_discard(struct summary *summary);

/* One line of JSON: the first counters of the summary, from "events" to "bytes". */
void status_json(const struct account *account);
/* One line for a terminal; previous_events and seconds give the rate. */
void status_terminal(const struct account *account, uint64_t previous_events, double seconds);

#endif
