// SPDX-License-Identifier: MIT
// A page is a sequence of events, each with the time since the previous event (kernel/trace/ring_buffer.c). Every
// length in the page is checked before it is used, so a damaged page causes no read out of bounds.
#include "ring_page.h"

#include <errno.h>
#include <string.h>

/* Flags in the commit field, which no format file describes: events before this page were overwritten
 * (RB_MISSED_EVENTS), and their number follows the page's events (RB_MISSED_STORED).
 */
#define MISSED_EVENTS (UINT32_C(1) << 31)
#define MISSED_STORED (UINT32_C(1) << 30)

enum {
	WORD_BYTES = 4,
	TIME_STAMP_BITS =
		59, /* an absolute time has only these low bits; the previous time gives the high bits (TS_MSB) */
	DISCARDED_AT_ONCE_NS = 1, /* a discarded event has this delta instead of 0 (rb_event_discard) */
};

struct cursor {
	const struct page_layout *layout;
	const uint8_t *data;
	uint32_t at, length;
	uint64_t ns;
	event_sink sink;
	void *context;
	struct page_account *account;
};

uint64_t ring_integer(const uint8_t *at, uint32_t bytes)
{
	uint64_t value = 0;

	memcpy(&value, at, bytes <= sizeof(value) ? bytes : sizeof(value));
	return value;
}

static uint32_t word_at(const struct cursor *cursor, uint32_t at)
{
	return (uint32_t)ring_integer(cursor->data + at, WORD_BYTES);
}

static void set_absolute_time(struct cursor *cursor, uint64_t stamp)
{
	const uint64_t low = (UINT64_C(1) << TIME_STAMP_BITS) - 1;
	uint64_t ns = (cursor->ns & ~low) | (stamp & low);

	cursor->ns = ns < cursor->ns ? ns + low + 1 : ns;
}

/* Handles one event. Returns 0, 1 at the end of the page's events, or -EBADMSG. */
static int step(struct cursor *cursor)
{
	const struct page_layout *layout = cursor->layout;
	uint32_t left = cursor->length - cursor->at;
	uint32_t first, type, delta, array, header = WORD_BYTES, bytes;

	if (left < WORD_BYTES)
		return left ? -EBADMSG : 1;
	first = word_at(cursor, cursor->at);
	type = first & ((UINT32_C(1) << layout->type_bits) - 1);
	delta = first >> layout->type_bits;
	if (type == layout->type_padding && !delta)
		return 1; /* the rest of the page is unused */
	if (type && type <= layout->type_data_max) {
		bytes = type * WORD_BYTES;
	} else {
		if (left < 2 * WORD_BYTES)
			return -EBADMSG;
		array = word_at(cursor, cursor->at + WORD_BYTES);
		if (type == layout->type_time_extend || type == layout->type_time_stamp) {
			uint64_t time = ((uint64_t)array << (32 - layout->type_bits)) + delta;

			if (type == layout->type_time_stamp)
				set_absolute_time(cursor, time);
			else
				cursor->ns += time;
			cursor->at += 2 * WORD_BYTES;
			return 0;
		}
		if ((type && type != layout->type_padding) || array < WORD_BYTES)
			return -EBADMSG;
		header = 2 * WORD_BYTES;
		bytes = array - WORD_BYTES; /* the length includes its own word */
	}
	if (bytes > left - header)
		return -EBADMSG;
	if (type != layout->type_padding || delta != DISCARDED_AT_ONCE_NS)
		cursor->ns += delta;
	if (type != layout->type_padding) {
		cursor->account->events++;
		cursor->sink(cursor->context, cursor->ns, cursor->data + cursor->at + header, bytes);
	}
	cursor->at += header + bytes;
	return 0;
}

static void read_missed(const struct page_layout *layout, const struct cursor *cursor, uint32_t flags,
			uint32_t room, struct page_account *account)
{
	uint32_t bytes = layout->commit.bytes; /* commit and count are both a long of the kernel */

	if (!(flags & MISSED_EVENTS))
		return;
	if (flags & MISSED_STORED && room - cursor->length >= bytes)
		account->missed = ring_integer(cursor->data + cursor->length, bytes);
	account->missed_uncounted = !account->missed;
}

int ring_page_walk(const struct page_layout *layout, const uint8_t *page, size_t bytes, event_sink sink,
		   void *context, struct page_account *account)
{
	struct cursor cursor = {.layout = layout, .sink = sink, .context = context, .account = account};
	uint32_t room, commit;
	int status;

	*account = (struct page_account){0};
	if (bytes < layout->data.at)
		return -EBADMSG;
	room = (uint32_t)(bytes - layout->data.at);
	room = room < layout->data.bytes ? room : layout->data.bytes;
	commit = (uint32_t)ring_integer(page + layout->commit.at, WORD_BYTES);
	cursor.length = commit & ~(MISSED_EVENTS | MISSED_STORED);
	cursor.data = page + layout->data.at;
	cursor.ns = ring_integer(page + layout->timestamp.at, layout->timestamp.bytes);
	if (cursor.length > room)
		return -EBADMSG;
	read_missed(layout, &cursor, commit, room, account);
	do
		status = step(&cursor);
	while (!status);
	return status < 0 ? status : 0;
}
