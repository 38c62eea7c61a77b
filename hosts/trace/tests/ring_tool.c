// SPDX-License-Identifier: MIT
// Decodes one page of a trace ring from standard input as the tracer does. The formats are files of a directory.
//     ring_tool custom|stock DIRECTORY    (header_page, header_event, tcp_probe, tcp_retransmit_skb)
// Prints a line per event, "record HEX", "failed", "other" or "damaged", then "page STATUS EVENTS MISSED UNCOUNTED".
// If a format is refused, prints "refused FORMAT REASON" and exits with 2.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../event_record.h"
#include "../ring_page.h"

enum { TEXT_BYTES = 16384, CPU = 3 };

static int refuse(const char *what, const char *why)
{
	printf("refused %s %s\n", what, why);
	return 2;
}

static char *read_text(const char *directory, const char *name)
{
	char path[4096], *text = calloc(1, TEXT_BYTES);
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "re");
	if (!file || !text || fread(text, 1, TEXT_BYTES - 1, file) == 0)
		exit(3);
	fclose(file);
	return text;
}

static void print_event(void *context, uint64_t ns, const uint8_t *data, uint32_t bytes)
{
	static const char *const OUTCOMES[] = {"record ", "failed", "other", "damaged"};
	struct tcp_record record;
	enum event_outcome outcome = event_decode(context, ns, CPU, data, bytes, &record);

	fputs(OUTCOMES[outcome], stdout);
	for (size_t i = 0; outcome == EVENT_RECORD && i < sizeof(record); i++)
		printf("%02x", ((const uint8_t *)&record)[i]);
	putchar('\n');
}

static int read_formats(const char *directory, bool custom, struct page_layout *layout,
			struct event_decoder *decoder)
{
	static const char *const NAMES[] = {"tcp_probe", "tcp_retransmit_skb"};
	static const uint8_t EVENTS[] = {TCP_EVENT_PROBE, TCP_EVENT_RETRANSMIT};
	char *page = read_text(directory, "header_page"), *event = read_text(directory, "header_event");
	int status = page_layout_parse(layout, page, event) ? refuse("header", "format") : 0;

	free(page);
	free(event);
	for (int i = 0; !status && i < 2; i++) {
		char *text = read_text(directory, NAMES[i]);
		struct event_format format;
		const char *missing;

		if (event_format_parse(&format, text)) {
			status = refuse(NAMES[i], "format");
		} else {
			missing = (custom ? event_kind_custom : event_kind_stock)(&decoder->kind[i], &format,
										  EVENTS[i]);
			status = missing ? refuse(NAMES[i], missing) : 0;
			decoder->type = *event_format_find(&format, "common_type", 2);
		}
		free(text);
	}
	return status;
}

int main(int argc, char **argv)
{
	struct page_account account;
	struct event_decoder decoder;
	struct page_layout layout;
	uint8_t buffer[1 << 16], *page;
	size_t bytes;
	int status;

	if (argc != 3)
		return 3;
	status = read_formats(argv[2], !strcmp(argv[1], "custom"), &layout, &decoder);
	if (status)
		return status;
	bytes = fread(buffer, 1, sizeof(buffer), stdin);
	page = malloc(bytes ? bytes : 1); /* exact size: the sanitizer finds every read beyond the page */
	memcpy(page, buffer, bytes);
	status = ring_page_walk(&layout, page, bytes, print_event, &decoder, &account);
	printf("page %d %" PRIu32 " %" PRIu64 " %d\n", status, account.events, account.missed,
	       account.missed_uncounted);
	free(page);
	return 0;
}
