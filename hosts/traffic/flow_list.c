// SPDX-License-Identifier: MIT
// Reads the flows strictly: six words per line and known settings, every number in bounds.
#include "flow_list.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/report.h"

enum { LINE_BYTES = 256, FIRST_CAPACITY = 1024 };

#define FORM "CC CLIENT_PORT SERVER_PORT OFFSET_NS BYTES USER [WORD...]"

/* The stored copy of a name, so that a flow needs only a pointer. NULL: not a valid name, or too many names. */
static const char *intern(struct flow_list *list, const char *word)
{
	size_t length = word ? strlen(word) : 0;

	if (!length || length >= CC_NAME_BYTES)
		return NULL;
	for (const char *letter = word; *letter; letter++)
		if (!islower((unsigned char)*letter) && !isdigit((unsigned char)*letter) && *letter != '_')
			return NULL;
	for (int index = 0; index < MOST_CONGESTION_CONTROLS; index++) {
		if (!*list->ccs[index])
			strcpy(list->ccs[index], word);
		if (!strcmp(list->ccs[index], word))
			return list->ccs[index];
	}
	return NULL;
}

/* The stored address. NULL: not numeric, or too many addresses. */
static const struct sockaddr_storage *intern_source(struct flow_list *list, const char *word)
{
	struct sockaddr_storage address = {.ss_family = strchr(word, ':') ? AF_INET6 : AF_INET}, *place;
	void *bytes = &((struct sockaddr_in *)&address)->sin_addr;
	uint32_t hash = 0;

	if (address.ss_family == AF_INET6)
		bytes = &((struct sockaddr_in6 *)&address)->sin6_addr;
	if (inet_pton(address.ss_family, word, bytes) != 1)
		return NULL;
	for (const char *letter = word; *letter; letter++)
		hash = hash * 31 + (unsigned char)*letter;
	/* The table is at most half full, so the search ends. */
	for (;; hash++) {
		place = &list->sources[hash % (2 * MOST_SOURCES)];
		if (place->ss_family && !memcmp(place, &address, sizeof(address)))
			return place;
		if (!place->ss_family)
			break;
	}
	if (list->source_count == MOST_SOURCES)
		return NULL;
	list->source_count++;
	*place = address;
	return place;
}

static bool next_number(char **rest, uint64_t low, uint64_t high, uint64_t *value)
{
	const char *word = strtok_r(NULL, " \n", rest);

	return word && whole_number(word, low, high, value);
}

/* A word after the numbers: from=ADDRESS, window=N, buffer=N, stop=N, pacing, ecn or late. */
static bool read_setting(struct flow_list *list, struct flow *flow, const char *word)
{
	const char *value = strchr(word, '=');
	size_t length = value ? (size_t)(value - word) : 0;
	uint64_t number;

	if (!strcmp(word, "pacing"))
		return flow->pacing = true;
	if (!strcmp(word, "ecn"))
		return flow->ecn = true;
	if (!strcmp(word, "late"))
		return flow->late = !flow_is_finite(flow);
	if (!value++)
		return false;
	if (length == 4 && !strncmp(word, "from", length))
		return (flow->source = intern_source(list, value));
	if (length == 4 && !strncmp(word, "stop", length))
		return whole_number(value, 1, INT64_MAX, &flow->stop_ns);
	if (length != 6)
		return false;
	if (!strncmp(word, "window", length) && whole_number(value, 1, MOST_WINDOW_SEGMENTS, &number))
		return (flow->window_segments = (uint32_t)number);
	if (!strncmp(word, "buffer", length) && whole_number(value, 1, INT32_MAX, &number))
		return (flow->buffer_bytes = (uint32_t)number);
	return false;
}

static bool read_line(struct flow_list *list, char *line, struct flow *flow)
{
	uint64_t client_port, server_port, offset_ns, bytes, user;
	char *rest = line, *word;
	const char *cc = intern(list, strtok_r(line, " \n", &rest));

	if (!cc || !next_number(&rest, 1, 65535, &client_port) ||
	    !next_number(&rest, 1, 65535, &server_port) || !next_number(&rest, 0, INT64_MAX, &offset_ns) ||
	    !next_number(&rest, 0, INT64_MAX, &bytes) || !next_number(&rest, 0, UINT32_MAX, &user) ||
	    (user && !bytes))
		return false;
	*flow = (struct flow){
		.cc = cc,
		.client_port = (uint16_t)client_port,
		.server_port = (uint16_t)server_port,
		.offset_ns = offset_ns,
		.bytes = bytes,
		.user = (uint32_t)user,
		.fd = -1,
	};
	while ((word = strtok_r(NULL, " \n", &rest)))
		if (!read_setting(list, flow, word))
			return false;
	list->with_ecn += flow->ecn;
	list->with_window |= flow->window_segments > 0;
	return true;
}

static int by_offset(const void *left, const void *right)
{
	const struct flow *a = *(struct flow *const *)left, *b = *(struct flow *const *)right;

	if (a->late != b->late)
		return a->late ? 1 : -1;
	if (a->offset_ns != b->offset_ns)
		return a->offset_ns < b->offset_ns ? -1 : 1;
	return (a->client_port > b->client_port) - (a->client_port < b->client_port);
}

static int by_user(const void *left, const void *right)
{
	const struct flow *a = *(struct flow *const *)left, *b = *(struct flow *const *)right;

	if (a->user != b->user)
		return a->user < b->user ? -1 : 1;
	return (a > b) - (a < b);
}

/* Links each user's flows in the order of their lines. */
static void link_users(struct flow **sorted, uint32_t count)
{
	qsort(sorted, count, sizeof(*sorted), by_user);
	for (uint32_t index = 1; index < count; index++)
		if (sorted[index]->user == sorted[index - 1]->user) {
			sorted[index - 1]->next = sorted[index];
			sorted[index]->follows = true;
		}
}

static int arrange(struct flow_list *list)
{
	struct flow **of_users = malloc(list->count * sizeof(*of_users));
	uint32_t user_count = 0;

	list->long_flows = malloc(list->count * sizeof(*list->long_flows));
	if (!of_users || !list->long_flows) {
		free(of_users);
		return -ENOMEM;
	}
	for (uint32_t index = 0; index < list->count; index++) {
		struct flow *flow = list->flows + index;

		if (!flow_is_finite(flow)) {
			list->long_flows[list->long_count++] = flow;
			list->early_count += !flow->late;
		} else if (flow->user) {
			of_users[user_count++] = flow;
		}
	}
	qsort(list->long_flows, list->long_count, sizeof(*list->long_flows), by_offset);
	link_users(of_users, user_count);
	free(of_users);
	return 0;
}

/* Makes room for one more flow; *capacity is the number of flows with room. */
static int grow(struct flow_list *list, uint32_t *capacity)
{
	uint32_t more = *capacity ? 2 * *capacity : FIRST_CAPACITY;
	struct flow *flows;

	if (list->count < *capacity)
		return 0;
	flows = realloc(list->flows, more * sizeof(*flows));
	if (!flows)
		return -ENOMEM;
	list->flows = flows;
	*capacity = more;
	return 0;
}

static int read_all(FILE *file, struct flow_list *list)
{
	char line[LINE_BYTES];
	uint32_t capacity = 0;

	while (fgets(line, sizeof(line), file)) {
		if (list->count < MOST_FLOWS && grow(list, &capacity))
			return -ENOMEM;
		if (list->count == MOST_FLOWS || !read_line(list, line, list->flows + list->count)) {
			complain("standard input, line %" PRIu32 ": give " FORM ", %d lines at most",
				 list->count + 1, MOST_FLOWS);
			return -EINVAL;
		}
		list->count++;
	}
	if (list->count)
		return arrange(list);
	complain("standard input names no flow: give " FORM ", one line per flow");
	return -EINVAL;
}

int flow_list_read(FILE *file, struct flow_list *list)
{
	int err;

	*list = (struct flow_list){0};
	err = read_all(file, list);
	if (err == -ENOMEM)
		complain("reading the flows: no memory after %" PRIu32 " lines", list->count);
	if (err)
		flow_list_free(list);
	return err;
}

void flow_list_free(struct flow_list *list)
{
	for (uint32_t index = 0; index < list->count; index++)
		free(list->flows[index].error);
	free(list->flows);
	free(list->long_flows);
	list->flows = NULL;
	list->long_flows = NULL;
	list->count = list->long_count = list->early_count = 0;
}
