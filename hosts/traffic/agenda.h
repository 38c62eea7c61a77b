/* SPDX-License-Identifier: MIT
 * The flows that begin later, ordered by their start times: a binary heap. Flows with equal times keep the order of
 * their lines.
 */
#ifndef TRAFFIC_AGENDA_H
#define TRAFFIC_AGENDA_H

#include <stdbool.h>

#include "flow_list.h"

struct appointment {
	uint64_t due_mono_ns;
	struct flow *flow;
};

struct agenda {
	struct appointment *heap;
	uint32_t count;
	uint32_t capacity;
};

/* Makes room for `capacity` flows. 0 or -ENOMEM. */
int agenda_open(struct agenda *agenda, uint32_t capacity);
void agenda_close(struct agenda *agenda);

/* There must be room: a flow has one appointment at most. */
void agenda_add(struct agenda *agenda, struct flow *flow, uint64_t due_mono_ns);

/* The time of the first appointment; UINT64_MAX if there is none. */
uint64_t agenda_first_ns(const struct agenda *agenda);

/* Takes the first flow off the agenda, which must not be empty. */
struct flow *agenda_take(struct agenda *agenda);

#endif
