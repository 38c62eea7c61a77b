/* SPDX-License-Identifier: MIT
 * The command line of the collector.
 */
#ifndef COLLECTOR_OPTIONS_H
#define COLLECTOR_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "address.h"

enum { MAX_RECEIVERS = 16 };

struct options {
	struct address listen;
	struct address source; /* the only sender to accept; empty text: accept all */
	const char *output;    /* raw file; NULL with discard */
	const char *summary;   /* JSON; NULL: to stdout (discard only) */
	bool status;	       /* JSON lines on stdout */
	bool discard;
	uint64_t status_ms; /* between two status lines */
	uint64_t receivers;
	uint64_t receive_buffer_bytes; /* of all receivers */
	uint64_t buffers;	       /* of each receiver */
};

/* Returns 0; 1 after --help; -EINVAL after one line. */
int options_parse(struct options *options, int argc, char **argv);

#endif
