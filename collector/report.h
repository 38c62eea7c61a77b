/* SPDX-License-Identifier: MIT
 * How the programs of this directory tell a person about trouble: one line on stderr.
 */
#ifndef COLLECTOR_REPORT_H
#define COLLECTOR_REPORT_H

#include <stdint.h>

enum {
	EXIT_TROUBLE =
		1, /* while running: something received could not be stored, or the summary not written */
	EXIT_USAGE = 2, /* before running: bad options, port in use, file exists, directory missing */
};

extern const char *program_name;

/* "PROGRAM: " and the message as one line. Say doing what, to what, why, and what to do. */
__attribute__((format(printf, 1, 2))) void complain(const char *format, ...);

/* A whole number in [low, high] that is all of text. Returns 0, or -EINVAL after one line that names option.
 */
int parse_number(const char *option, const char *text, uint64_t low, uint64_t high, uint64_t *value);

#endif
