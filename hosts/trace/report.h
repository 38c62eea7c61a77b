/* SPDX-License-Identifier: MIT
 * How the programs of this directory tell a person about trouble: one line on stderr that says doing what, to
 * what, why, and what to do.
 */
#ifndef TRACE_REPORT_H
#define TRACE_REPORT_H

#include <stdint.h>

enum {
	EXIT_TROUBLE = 1, /* while running: an event lost, or something not written */
	EXIT_SETUP = 2,	  /* before running: bad options, kernel without what is needed, file exists */
};

extern const char *program_name;

__attribute__((format(printf, 1, 2))) void complain(const char *format, ...);

/* A whole number in [low, high] that is all of text. 0, or -EINVAL after one line that names option. */
int parse_number(const char *option, const char *text, uint64_t low, uint64_t high, uint64_t *value);

#endif
