// SPDX-License-Identifier: MIT
// Reads the flows strictly: four words a line, every number in bounds.
#include "flow_list.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/report.h"

enum { LINE_BYTES = 128 };

static bool is_cc(const char *word)
{
	if (!word || !*word || strlen(word) >= CC_NAME_BYTES)
		return false;
	for (; *word; word++)
		if (!islower((unsigned char)*word) && !isdigit((unsigned char)*word) && *word != '_')
			return false;
	return true;
}

static bool number(const char *word, uint64_t low, uint64_t high, uint64_t *value)
{
	return word && whole_number(word, low, high, value);
}

static bool read_line(char *line, struct flow *flow)
{
	char *rest = line;
	const char *cc = strtok_r(line, " \n", &rest);
	uint64_t client_port, server_port, offset_ns;

	if (!is_cc(cc) || !number(strtok_r(NULL, " \n", &rest), 1, 65535, &client_port) ||
	    !number(strtok_r(NULL, " \n", &rest), 1, 65535, &server_port) ||
	    !number(strtok_r(NULL, " \n", &rest), 0, INT64_MAX, &offset_ns) || strtok_r(NULL, " \n", &rest))
		return false;
	*flow = (struct flow){
		.client_port = (uint16_t)client_port,
		.server_port = (uint16_t)server_port,
		.offset_ns = offset_ns,
		.fd = -1,
	};
	strcpy(flow->cc, cc);
	return true;
}

static int by_offset(const void *left, const void *right)
{
	const struct flow *a = left, *b = right;

	if (a->offset_ns != b->offset_ns)
		return a->offset_ns < b->offset_ns ? -1 : 1;
	return (a->client_port > b->client_port) - (a->client_port < b->client_port);
}

int flow_list_read(FILE *file, struct flow **flows, uint32_t *count)
{
	char line[LINE_BYTES];
	int err = 0;

	*count = 0;
	*flows = calloc(MOST_FLOWS, sizeof(**flows));
	if (!*flows) {
		complain("reading the flows: no memory for %d", MOST_FLOWS);
		return -ENOMEM;
	}
	while (!err && fgets(line, sizeof(line), file)) {
		if (*count == MOST_FLOWS || !read_line(line, *flows + *count)) {
			complain("standard input, line %" PRIu32
				 ": give CC CLIENT_PORT SERVER_PORT OFFSET_NS, %d "
				 "lines at most",
				 *count + 1, MOST_FLOWS);
			err = -EINVAL;
		} else {
			++*count;
		}
	}
	if (!err && !*count) {
		complain("standard input names no flow: give CC CLIENT_PORT SERVER_PORT OFFSET_NS, a line "
			 "each");
		err = -EINVAL;
	}
	if (err) {
		free(*flows);
		*flows = NULL;
	} else {
		qsort(*flows, *count, sizeof(**flows), by_offset);
	}
	return err;
}
