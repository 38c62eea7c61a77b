/* SPDX-License-Identifier: MIT
 * The command line of tcp_trace.
 */
#ifndef TRACE_OPTIONS_H
#define TRACE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct options {
	const char *output;
	const char *summary;
	const char *netns;
	const char *btf;
	const char *drop_user; /* NULL: keep running as who started it */
	uint64_t ring_bytes;   /* of each CPU; a power of two of at least a page */
	uint16_t first_port;
	uint16_t last_port;
	bool status;
	bool verbose;
};

/* 0; 1 when help was asked for and given; -EINVAL after one line of what is wrong. */
int options_parse(struct options *options, int argc, char **argv);

#endif
