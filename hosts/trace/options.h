/* SPDX-License-Identifier: MIT
 * The command line of tcp_trace.
 */
#ifndef TRACE_OPTIONS_H
#define TRACE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum source_choice { SOURCE_AUTO, SOURCE_BPF, SOURCE_TRACEFS };

/* Receives a record from a source's ring; returns -EINTR to end the reading early. */
typedef int (*record_sink)(void *context, void *record, size_t bytes);

struct options {
	const char *output;
	const char *summary;
	const char *netns;
	const char *btf; /* NULL: the running kernel's BTF */
	enum source_choice source;
	uint64_t ring_bytes; /* per CPU; a power of two, at least a page */
	uint16_t first_port;
	uint16_t last_port;
	uint64_t status_ms; /* interval of status lines */
	uint64_t read_ms;   /* between two readings of the rings */
	bool status;
	bool verbose;
};

/* Returns 0; 1 after printing the help; -EINVAL after one message. */
int options_parse(struct options *options, int argc, char **argv);

#endif
