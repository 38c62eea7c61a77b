/* SPDX-License-Identifier: MIT
 * Reads a record from standard input, and prints its fields as C decodes them: one "name value" per line.
 * argv[1] is the format's name. A postcard is also encoded again, and must give the same bytes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "wire/block.h"
#include "wire/flow_record.h"
#include "wire/goodput_record.h"
#include "wire/postcard.h"
#include "wire/tcp_record.h"

static void print_value(const char *name, uint128_t value)
{
	printf("%s 0x%" PRIx64 "%016" PRIx64 "\n", name, (uint64_t)(value >> 64), (uint64_t)value);
}

static int print_postcard(const uint8_t *bytes, size_t length)
{
	struct postcard card;
	uint8_t again[POSTCARD_BYTES];

	if (length != POSTCARD_BYTES)
		return 1;
	postcard_decode(&card, bytes);
#define FIELD(bits, name) print_value(#name, card.name);
#include "wire/postcard.def"
	postcard_encode(again, &card);
	return memcmp(again, bytes, length) != 0;
}

/* Copies `bytes` to `record`. If their lengths differ, the calling function returns 1. */
#define TAKE(record, bytes, length)                                                                          \
	do {                                                                                                 \
		if ((length) != sizeof(record))                                                              \
			return 1;                                                                            \
		memcpy(&(record), bytes, length);                                                            \
	} while (0)

static int print_tcp_record(const uint8_t *bytes, size_t length)
{
	struct tcp_record record;

	TAKE(record, bytes, length);
#define FIELD(bits, name) print_value(#name, record.name);
#include "wire/tcp_record.def"
	return 0;
}

static int print_goodput_record(const uint8_t *bytes, size_t length)
{
	struct goodput_record record;

	TAKE(record, bytes, length);
#define FIELD(bits, name) print_value(#name, record.name);
#include "wire/goodput_record.def"
	return 0;
}

static int print_flow_record(const uint8_t *bytes, size_t length)
{
	struct flow_record record;

	TAKE(record, bytes, length);
#define FIELD(bits, name) print_value(#name, record.name);
#include "wire/flow_record.def"
	return 0;
}

int main(int argc, char **argv)
{
	uint8_t bytes[4096];
	size_t length = fread(bytes, 1, sizeof(bytes), stdin);

	if (argc != 2)
		return 2;
	if (!strcmp(argv[1], "goodput_record"))
		return print_goodput_record(bytes, length);
	if (!strcmp(argv[1], "flow_record"))
		return print_flow_record(bytes, length);
	return strcmp(argv[1], "postcard") == 0 ? print_postcard(bytes, length)
						: print_tcp_record(bytes, length);
}
