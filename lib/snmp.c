// SPDX-License-Identifier: MIT
// Two lines a protocol, "Tcp: names" and "Tcp: values"; which counters there are, and their order, differs between kernels.
#include "snmp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINE = 4096 };

/* The number that stands in values where name stands in names. Both lines are cut into words in place. */
static int find(char *names, char *values, const char *name, uint64_t *value)
{
	char *names_rest, *values_rest;
	char *each = strtok_r(names, " \n", &names_rest), *number = strtok_r(values, " \n", &values_rest);

	for (; each && number;
	     each = strtok_r(NULL, " \n", &names_rest), number = strtok_r(NULL, " \n", &values_rest)) {
		if (!strcmp(each, name)) {
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

	fflush(file); /* what was read before is forgotten */
	rewind(file);
	while (fgets(names, sizeof(names), file) && fgets(values, sizeof(values), file))
		if (!strncmp(names, protocol, length) && names[length] == ':')
			return find(names, values, name, value);
	return -ENOENT;
}
