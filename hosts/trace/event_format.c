// SPDX-License-Identifier: MIT
// Parses one field per line: "field:TYPE NAME; offset:N; size:N; signed:N;", and the line "ID: N". Skips all other
// text, and ends at "print fmt:". The numbers of header_event have their own form (parse_types).
#include "event_format.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 1 << 20 }; /* a larger offset or size is damage: it exceeds every sub-buffer */

/* Parses the number that follows key in the line. */
static bool number_after(const char *line, const char *end, const char *key, uint32_t *number)
{
	const char *digits = strstr(line, key);
	unsigned long value;
	char *after;

	if (!digits || digits >= end)
		return false;
	digits += strlen(key);
	while (*digits == ' ' || *digits == '\t' || *digits == ':' || *digits == '=')
		digits++;
	if (!isdigit((unsigned char)*digits))
		return false;
	value = strtoul(digits, &after, 10);
	*number = (uint32_t)value;
	return after <= end && value <= MAX_BYTES;
}

/* The last word of "const void * skaddr" or "__u8 saddr[28]", without the brackets. */
static void copy_name(char *name, const char *start, const char *end)
{
	const char *bracket = memchr(start, '[', (size_t)(end - start));
	size_t length;

	if (bracket && bracket > start &&
	    bracket[-1] != ' ') /* "__data_loc char[] name" has its brackets before the name */
		end = memchr(bracket, ' ', (size_t)(end - bracket)) ? end : bracket;
	start = memrchr(start, ' ', (size_t)(end - start)) ?: start;
	start += *start == ' ';
	length = (size_t)(end - start);
	length = length < EVENT_NAME_BYTES ? length : EVENT_NAME_BYTES - 1;
	memcpy(name, start, length);
	name[length] = '\0';
}

static bool parse_field(struct event_field *field, const char *line, const char *end)
{
	const char *start = strstr(line, "field:");
	const char *semicolon;

	if (!start || start >= end)
		return false;
	start += strlen("field:");
	semicolon = memchr(start, ';', (size_t)(end - start));
	if (!semicolon)
		return false;
	copy_name(field->name, start, semicolon);
	return number_after(semicolon, end, "offset:", &field->at) &&
	       number_after(semicolon, end, "size:", &field->bytes);
}

int event_format_parse(struct event_format *format, const char *text)
{
	const char *end;

	*format = (struct event_format){0};
	for (const char *line = text; *line && format->fields < EVENT_MAX_FIELDS; line = end + !!*end) {
		end = strchrnul(line, '\n');
		if (!strncmp(line, "print fmt:", strlen("print fmt:")))
			break; /* the rest is free text for people */
		if (!strncmp(line, "ID:", strlen("ID:")))
			number_after(line, end, "ID:", &format->id);
		else if (parse_field(&format->field[format->fields], line, end))
			format->fields++;
	}
	return format->fields ? 0 : -EBADMSG;
}

const struct event_field *event_format_find(const struct event_format *format, const char *name,
					    uint32_t bytes)
{
	for (uint32_t i = 0; i < format->fields; i++)
		if (!strcmp(format->field[i].name, name) && (!bytes || format->field[i].bytes == bytes))
			return &format->field[i];
	return NULL;
}

static bool parse_types(struct page_layout *layout, const char *text)
{
	const char *end = text + strlen(text);
	uint32_t delta_bits;

	return number_after(text, end, "type_len", &layout->type_bits) &&
	       number_after(text, end, "time_delta", &delta_bits) && layout->type_bits + delta_bits == 32 &&
	       layout->type_bits && delta_bits &&
	       number_after(text, end, "padding     : type", &layout->type_padding) &&
	       number_after(text, end, "time_extend : type", &layout->type_time_extend) &&
	       number_after(text, end, "time_stamp : type", &layout->type_time_stamp) &&
	       number_after(text, end, "data max type_len", &layout->type_data_max);
}

int page_layout_parse(struct page_layout *layout, const char *header_page, const char *header_event)
{
	const struct event_field *timestamp, *commit, *data;
	struct event_format page;

	*layout = (struct page_layout){0};
	if (event_format_parse(&page, header_page) || !parse_types(layout, header_event))
		return -EBADMSG;
	timestamp = event_format_find(&page, "timestamp", 8);
	commit = event_format_find(&page, "commit", 8) ?: event_format_find(&page, "commit", 4);
	data = event_format_find(&page, "data", 0);
	if (!timestamp || !commit || !data || timestamp->at + timestamp->bytes > data->at ||
	    commit->at + commit->bytes > data->at)
		return -EBADMSG;
	layout->timestamp = *timestamp;
	layout->commit = *commit;
	layout->data = *data;
	return 0;
}
