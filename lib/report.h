/* SPDX-License-Identifier: MIT
 * How a program tells a person about trouble: one line on stderr that says doing what, to what, why, and what
 * to do. And how it reads the numbers a person gave.
 */
#ifndef LIB_REPORT_H
#define LIB_REPORT_H

#include <stdbool.h>
#include <stdint.h>

enum {
	EXIT_TROUBLE = 1, /* while running: something lost, or not written */
	EXIT_SETUP = 2,	  /* before running: bad options, file exists, something needed is missing */
};

/* Each program defines it. */
extern const char *const program_name;

/* "PROGRAM: " and the message as one line. */
__attribute__((format(printf, 1, 2))) void complain(const char *format, ...);

/* Whether all of text is a whole number in [low, high]; value is that number only then. */
bool whole_number(const char *text, uint64_t low, uint64_t high, uint64_t *value);

/* The same, 0 or -EINVAL after one line that names option. */
int parse_number(const char *option, const char *text, uint64_t low, uint64_t high, uint64_t *value);

#endif
