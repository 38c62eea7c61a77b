// SPDX-License-Identifier: MIT
// Messages to people, and strict parsing of numbers.
#include "report.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINE_BYTES = 8192 }; /* two paths of the maximum length; longer messages are cut */

void complain(const char *format, ...)
{
	char line[LINE_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	fprintf(stderr, "%s: %s\n", program_name, line);
}

bool whole_number(const char *text, uint64_t low, uint64_t high, uint64_t *value)
{
	char *end = NULL;

	/* strtoull alone would accept "-1" and " 1". */
	errno = 0;
	*value = isdigit((unsigned char)*text) ? strtoull(text, &end, 10) : 0;
	return end && !*end && !errno && *value >= low && *value <= high;
}

int parse_number(const char *option, const char *text, uint64_t low, uint64_t high, uint64_t *value)
{
	if (whole_number(text, low, high, value))
		return 0;
	complain("%s '%s': give a whole number from %" PRIu64 " to %" PRIu64, option, text, low, high);
	return -EINVAL;
}
