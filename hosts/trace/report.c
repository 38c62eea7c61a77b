// SPDX-License-Identifier: MIT
// One line on stderr, and numbers read strictly.
#include "report.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void complain(const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "%s: %s\n", program_name, text);
}

int parse_number(const char *option, const char *text, uint64_t low, uint64_t high, uint64_t *value)
{
	char *end = NULL;

	errno = 0;
	*value = isdigit((unsigned char)text[0]) ? strtoull(text, &end, 10) : 0;
	if (!end || *end || errno || *value < low || *value > high) {
		complain("%s '%s': give a whole number from %" PRIu64 " to %" PRIu64, option, text, low,
			 high);
		return -EINVAL;
	}
	return 0;
}
