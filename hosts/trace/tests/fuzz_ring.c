// SPDX-License-Identifier: MIT
// libFuzzer target: decodes arbitrary pages by the kernel's formats or by arbitrary formats, and checks invariants.
#include <stdlib.h>
#include <string.h>

#include "../event_record.h"
#include "../ring_page.h"

#define COMMON                                                                                               \
	"format:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                      \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

static const char *const HEADER_PAGE = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				       "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				       "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
static const char *const HEADER_EVENT =
	"\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\tpadding     : type == 29\n"
	"\ttime_extend : type == 30\n\ttime_stamp : type == 31\n\tdata max type_len  == 28\n";
static const char *const CUSTOM = "ID: 1\n" COMMON "\tfield:__u8 failed;\toffset:14;\tsize:1;\tsigned:0;\n"
				  "\tfield:__u8 record_version;\toffset:15;\tsize:1;\tsigned:0;\n"
				  "\tfield:__u8 record[152];\toffset:16;\tsize:152;\tsigned:0;\n";
static const char *const STOCK = "ID: 2\n" COMMON "\tfield:__u8 saddr[28];\toffset:8;\tsize:28;\tsigned:0;\n"
				 "\tfield:__u8 daddr[28];\toffset:36;\tsize:28;\tsigned:0;\n"
				 "\tfield:__u16 sport;\toffset:64;\tsize:2;\tsigned:0;\n"
				 "\tfield:__u16 dport;\toffset:66;\tsize:2;\tsigned:0;\n"
				 "\tfield:__u32 snd_cwnd;\toffset:68;\tsize:4;\tsigned:0;\n"
				 "\tfield:__u32 ssthresh;\toffset:72;\tsize:4;\tsigned:0;\n";

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

/* data: a byte; four formats, each terminated by NUL, if the byte's low bit is set; a page. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *texts[] = {HEADER_PAGE, HEADER_EVENT, CUSTOM, STOCK};
	char *copies[4] = {NULL};
	struct event_decoder decoder;
	struct page_layout layout;
	bool arbitrary;

	if (!size)
		return 0;
	arbitrary = *data & 1;
	data++;
	size--;
	for (int i = 0; arbitrary && i < 4; i++) {
		size_t length = strnlen((const char *)data, size);

		copies[i] = strndup((const char *)data, length);
		texts[i] = copies[i];
		length += length < size;
		data += length;
		size -= length;
	}
	if (!page_layout_parse(&layout, texts[0], texts[1]) && read_kinds(&decoder, texts[2], texts[3]))
		walk(&layout, &decoder, data, size);
	for (int i = 0; i < 4; i++)
		free(copies[i]);
	return 0;
}
