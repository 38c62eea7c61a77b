/* SPDX-License-Identifier: MIT
 * Where the fields of an event or a page are, from the texts in which tracefs describes its own binary format
 * (events/GROUP/EVENT/format, events/header_page, events/header_event).
 */
#ifndef TRACE_EVENT_FORMAT_H
#define TRACE_EVENT_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

enum { EVENT_MAX_FIELDS = 64, EVENT_NAME_BYTES = 32 };

struct event_field {
	char name[EVENT_NAME_BYTES]; /* longer ones are cut */
	uint32_t at;		     /* bytes from the start of the event or page */
	uint32_t bytes;
};

struct event_format {
	uint32_t id; /* what common_type says of this event; 0 in header_page */
	uint32_t fields;
	struct event_field field[EVENT_MAX_FIELDS];
};

/* The ring's pages, as read from trace_pipe_raw. */
struct page_layout {
	struct event_field timestamp; /* ns of the page's beginning; 8 bytes */
	struct event_field commit;    /* bytes of events, and flags; 4 or 8 bytes */
	struct event_field data;      /* the events: as much as a page can have */
	uint32_t type_bits; /* of an event's first word the low ones, the others are its time delta */
	uint32_t
		type_data_max; /* types up to this are events of that many words, 0 those that say their size */
	uint32_t type_padding;
	uint32_t type_time_extend;
	uint32_t type_time_stamp;
};

/* 0, or -EBADMSG when the text is not such a description. */
int event_format_parse(struct event_format *format, const char *text);
int page_layout_parse(struct page_layout *layout, const char *header_page, const char *header_event);

/* NULL when there is none, or it does not have that many bytes (0: any number). */
const struct event_field *event_format_find(const struct event_format *format, const char *name,
					    uint32_t bytes);

#endif
