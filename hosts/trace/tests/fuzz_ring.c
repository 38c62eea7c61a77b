// SPDX-License-Identifier: MIT
// libFuzzer target: decodes arbitrary pages by arbitrary formats (test_ring.py gives it the kernel's), and checks
// invariants.
#include <stdlib.h>
#include <string.h>

#include "../event_record.h"
#include "../ring_page.h"

struct events {
	const struct event_decoder *decoder;
	const uint8_t *page;
	size_t bytes;
	uint32_t count;
};

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void take_event(void *context, uint64_t ns, const uint8_t *data, uint32_t bytes)
{
	struct events *events = context;
	struct tcp_record record;
	enum event_outcome outcome;

	require(data >= events->page && data + bytes <= events->page + events->bytes);
	events->count++;
	outcome = event_decode(events->decoder, ns, 0, data, bytes, &record);
	if (outcome == EVENT_RECORD || outcome == EVENT_FAILED)
		require(record.mono_ns == ns &&
			(record.event == TCP_EVENT_PROBE || record.event == TCP_EVENT_RETRANSMIT));
}

static void walk(const struct page_layout *layout, const struct event_decoder *decoder, const uint8_t *page,
		 size_t bytes)
{
	struct events events = {.decoder = decoder, .page = page, .bytes = bytes};
	struct page_account account;

	ring_page_walk(layout, page, bytes, take_event, &events, &account);
	require(account.events == events.count && events.count <= bytes / 4);
	require(!account.missed || !account.missed_uncounted);
}

static bool read_kinds(struct event_decoder *decoder, const char *first, const char *second)
{
	struct event_format formats[2];
	const struct event_field *type;

	if (event_format_parse(&formats[0], first) || event_format_parse(&formats[1], second))
		return false;
	type = event_format_find(&formats[0], "common_type", 2);
	if (!type || event_kind_custom(&decoder->kind[0], &formats[0], TCP_EVENT_PROBE) ||
	    event_kind_stock(&decoder->kind[1], &formats[1], TCP_EVENT_RETRANSMIT))
		return false;
	decoder->type = *type;
	return true;
}

/* data: four formats, each terminated by NUL; a page. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *texts[4];
	struct event_decoder decoder;
	struct page_layout layout;

	for (int i = 0; i < 4; i++) {
		size_t length = strnlen((const char *)data, size);

		texts[i] = strndup((const char *)data, length);
		length += length < size;
		data += length;
		size -= length;
	}
	if (!page_layout_parse(&layout, texts[0], texts[1]) && read_kinds(&decoder, texts[2], texts[3]))
		walk(&layout, &decoder, data, size);
	for (int i = 0; i < 4; i++)
		free(texts[i]);
	return 0;
}
