/* SPDX-License-Identifier: MIT
 * Errors for people: one line on stderr with the action, its object, the reason and the remedy. Also parses numbers
 * that people type.
 */
#ifndef LIB_REPORT_H
#define LIB_REPORT_H

#include <stdbool.h>
#include <stdint.h>

enum {
	EXIT_REFUSED = 1,    /* before running: bad options, file exists, missing requirement */
	EXIT_INCOMPLETE = 2, /* while running: data lost or not written */
};

/* Each program defines its name. */
extern const char *const program_name;

/* Prints "PROGRAM: " and the message as one line on stderr. */
__attribute__((format(printf, 1, 2))) void complain(const char *format, ...);

/* Whether the whole text is a decimal number in [low, high]. value is valid only if true. */
bool whole_number(const char *text, uint64_t low, uint64_t high, uint64_t *value);

/* Reads text as whole_number does. Returns 0, or -EINVAL after a line that names option. */
int parse_number(const char *option, const char *text, uint64_t low, uint64_t high, uint64_t *value);

#endif
