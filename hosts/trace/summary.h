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

/* The whole summary; context is a struct account. */
void summary_print(FILE *file, const void *context);

/* One line of JSON: the first counters of the summary, from "events" to "bytes". */
void status_json(const struct account *account);

#endif
