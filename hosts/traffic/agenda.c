// SPDX-License-Identifier: MIT
#include "agenda.h"

#include <errno.h>
#include <stdlib.h>

static bool before(const struct appointment *a, const struct appointment *b)
{
	return a->due_mono_ns != b->due_mono_ns ? a->due_mono_ns < b->due_mono_ns : a->flow < b->flow;
}

int agenda_open(struct agenda *agenda, uint32_t capacity)
{
	*agenda = (struct agenda){.heap = malloc(capacity * sizeof(*agenda->heap)), .capacity = capacity};
	return agenda->heap ? 0 : -ENOMEM;
}

void agenda_close(struct agenda *agenda)
{
	free(agenda->heap);
	*agenda = (struct agenda){0};
}

void agenda_add(struct agenda *agenda, struct flow *flow, uint64_t due_mono_ns)
{
	const struct appointment added = {.due_mono_ns = due_mono_ns, .flow = flow};
	uint32_t at = agenda->count++, parent;

	for (; at; at = parent) {
		parent = (at - 1) / 2;
		if (!before(&added, agenda->heap + parent))
			break;
		agenda->heap[at] = agenda->heap[parent];
	}
	agenda->heap[at] = added;
}

uint64_t agenda_first_ns(const struct agenda *agenda)
{
	return agenda->count ? agenda->heap[0].due_mono_ns : UINT64_MAX;
}

struct flow *agenda_take(struct agenda *agenda)
{
	struct flow *first = agenda->heap[0].flow;
	const struct appointment moved = agenda->heap[--agenda->count];
	uint32_t at = 0, child;

	while ((child = 2 * at + 1) < agenda->count) {
		if (child + 1 < agenda->count && before(agenda->heap + child + 1, agenda->heap + child))
			child++;
		if (!before(agenda->heap + child, &moved))
			break;
		agenda->heap[at] = agenda->heap[child];
		at = child;
	}
	agenda->heap[at] = moved;
	return first;
}
