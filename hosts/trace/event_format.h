/* SPDX-License-Identifier: MIT
 * Locates the fields of an event or a page from the text files in which tracefs describes its binary format
 * (events/GROUP/EVENT/format, events/header_page, events/header_event).
 */
#ifndef TRACE_EVENT_FORMAT_H
#define TRACE_EVENT_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

enum { EVENT_MAX_FIELDS = 64, EVENT_NAME_BYTES = 32 };

struct event_field {
	char name[EVENT_NAME_BYTES]; /* longer names are truncated */
	uint32_t at;		     /* bytes from the start of the event or page */
	uint32_t bytes;
};

struct event_format {
	uint32_t id; /* common_type in the data of this event; 0 in header_page */
	uint32_t fields;
	struct event_field field[EVENT_MAX_FIELDS];
};

/* The ring's pages, as read from trace_pipe_raw. */
struct page_layout {
	struct event_field timestamp; /* time of the page's start in ns; 8 bytes */
	struct event_field commit;    /* length of the events in bytes, and flags; 4 or 8 bytes */
	struct event_field data;      /* the events; its size is the page's capacity */
	uint32_t type_bits;	/* low bits of an event's first word are its type, high bits its time delta */
	uint32_t type_data_max; /* types 1 to this maximum are lengths in words; type 0 has a length field */
	uint32_t type_padding;
	uint32_t type_time_extend;
	uint32_t type_time_stamp;
};

/* Both return 0, or -EBADMSG if a text does not have the form that tracefs writes. */
int event_format_parse(struct event_format *format, const char *text);
int page_layout_parse(struct page_layout *layout, const char *header_page, const char *header_event);

/* NULL if there is no field of that name and size (bytes 0: any size). */
const struct event_field *event_format_find(const struct event_format *format, const char *name,
					    uint32_t bytes);

#endif
