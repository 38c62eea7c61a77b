// SPDX-License-Identifier: MIT
// libFuzzer: passes arbitrary datagrams to intake and sequence tracking, and checks the invariants.
#include <stdlib.h>
#include <string.h>

#include "collector/intake.h"

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void check(const struct intake *intake)
{
	const struct sequence_tracker *sequences = intake->sequences;
	uint64_t tracked = sequences->untracked;

	require(intake->received ==
		intake->accepted + intake->short_count + intake->trailing + intake->bad_version);
	for (unsigned int index = 0; index < sequences->stream_count; index++) {
		const struct sequence_stream *stream = &sequences->streams[index];
		uint64_t came = stream->received - stream->duplicates - stream->too_late;

		tracked += stream->received;
		require(!stream->missing == !stream->gaps && stream->gaps <= stream->missing);
		require(stream->restarts || stream->next - stream->first == came + stream->missing);
	}
	require(tracked == intake->accepted);
}

/* data: datagrams, each a length byte and that many bytes; passed on in batches of up to SOCKET_BATCH. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *records = malloc(SOCKET_BATCH * RECORD_BYTES);
	struct sequence_tracker *sequences = calloc(1, sizeof(*sequences));
	struct intake intake = {.sequences = sequences};
	struct arrival arrivals[SOCKET_BATCH];
	unsigned int count = 0, kept, datagrams = 0, strangers = 0;
	size_t length, part;

	require(records && sequences);
	while (size) {
		length = *data++;
		size--;
		length = length < size ? length : size;
		part = length < POSTCARD_BYTES ? length : POSTCARD_BYTES;
		memcpy(records + count * RECORD_BYTES + BLOCK_STAMP_BYTES, data, part);
		arrivals[count] = (struct arrival){.realtime_ns = (int64_t)length,
						   .bytes = (uint32_t)length,
						   .is_stranger = length && data[length - 1] & 1};
		strangers += arrivals[count].is_stranger;
		data += length;
		size -= length;
		datagrams++;
		if (++count == SOCKET_BATCH || !size) {
			kept = intake_batch(&intake, records, arrivals, count, 1);
			require(kept <= count);
			count = 0;
		}
	}
	check(&intake);
	require(intake.received == datagrams - strangers);
	free(sequences);
	free(records);
	return 0;
}
