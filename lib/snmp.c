// SPDX-License-Identifier: MIT
// Two lines per protocol, "Tcp: names" and "Tcp: values". The set of counters and their order depend on the kernel.
#include "snmp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINE = 4096 };

/* The number in values at the position of name in names. strtok_r modifies both lines. */
static int find(char *names, char *values, const char *name, uint64_t *value)
{
	char *names_rest, *values_rest;
	char *field = strtok_r(names, " \n", &names_rest), *number = strtok_r(values, " \n", &values_rest);

	for (; field && number;
	     field = strtok_r(NULL, " \n", &names_rest), number = strtok_r(NULL, " \n", &values_rest)) {
		if (!strcmp(field, name)) {
			*value = strtoull(number, NULL, 10);
			return 0;
		}
	}
	return -ENOENT;
}

int snmp_counter(FILE *file, const char *protocol, const char *name, uint64_t *value)
{
	char names[MAX_LINE], values[MAX_LINE];
	size_t length = strlen(protocol);

	fflush(file); /* discards stdio's buffer of the previous read */
	rewind(file);
	while (fgets(names, sizeof(names), file) && fgets(values, sizeof(values), file))
		if (!strncmp(names, protocol, length) && names[length] == ':')
			return find(names, values, name, value);
	return -ENOENT;
}
