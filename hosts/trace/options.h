/* SPDX-License-Identifier: MIT
 * The command line of tcp_trace.
 */
#ifndef TRACE_OPTIONS_H
#define TRACE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum source_choice { SOURCE_AUTO, SOURCE_BPF, SOURCE_TRACEFS };

/* Takes a record out of a source's ring; -EINTR ends the reading early. */
typedef int (*record_sink)(void *context, void *record, size_t bytes);

struct options {
	const char *output;
	const char *summary;
	const char *netns;
	const char *btf;       /* NULL: that of the running kernel */
	const char *drop_user; /* NULL: keep running as who started it */
	enum source_choice source;
	uint64_t ring_bytes; /* of each CPU; a power of two of at least a page */
	uint16_t first_port;
	uint16_t last_port;
	uint64_t status_ms; /* between two lines of status */
	bool status;
	bool verbose;
};

/* 0; 1 when help was asked for and given; -EINVAL after one line of what is wrong. */
int options_parse(struct options *options, int argc, char **argv);

#endif
