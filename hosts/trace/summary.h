/* SPDX-License-Identifier: MIT
 * The account of a trace: a line while it runs, JSON at the end.
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
	struct segments segments; /* of the namespace while the trace ran, by the kernel's count */
	uint64_t user_ns;	  /* CPU time of this process since the trace began */
	uint64_t first_mono_ns, last_mono_ns;
};

/* The summary is written under another name and renamed, so that it is whole or not there. summary_open makes
 * that file (-errno after one line when it cannot); summary_commit fills and renames it.
 */
struct summary {
	const char *path;
	char partial[4096];
	FILE *file;
};

int summary_open(struct summary *summary, const char *path);
int summary_commit(struct summary *summary, const struct account *account);
void summary_discard(struct summary *summary);

/* Events that are not in the file: no room in a ring, not seen, or their block could not be written. */
uint64_t account_lost(const struct account *account);

/* One line of JSON, the summary without what is only known at the end. */
void status_json(const struct account *account);
/* One line for a terminal; previous_events and seconds give the rate. */
void status_terminal(const struct account *account, uint64_t previous_events, double seconds);

#endif
