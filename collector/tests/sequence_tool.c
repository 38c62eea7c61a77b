// SPDX-License-Identifier: MIT
// sequence.c as a filter, for comparison with a model. stdin has cases: a count and that many cards. A card is three
// numbers (switch << 16 | port, at ingress, sequence number). All numbers have 32 bits in host order. stdout has a
// line for each stream of a case, and then the case's number of untracked cards.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "collector/sequence.h"

static void put_case(const struct sequence_tracker *tracker)
{
	for (unsigned int index = 0; index < tracker->stream_count; index++) {
		const struct sequence_stream *stream = &tracker->streams[index];

		printf("stream %u %u %d", stream->switch_id, stream->egress_port, stream->at_ingress);
		printf(" %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
		       " %" PRIu64 " %" PRIu64 "\n",
		       stream->received, sequence_first(stream), sequence_last(stream), stream->gaps,
		       stream->missing, stream->duplicates, stream->reordered, stream->too_late,
		       stream->restarts);
	}
	printf("end %" PRIu64 "\n", tracker->untracked);
}

int main(void)
{
	struct sequence_tracker *tracker;
	uint32_t count, card[3];

	while (fread(&count, sizeof(count), 1, stdin) == 1) {
		tracker = calloc(1, sizeof(*tracker));
		if (!tracker)
			return 1;
		while (count--) {
			if (fread(card, sizeof(card), 1, stdin) != 1)
				return 1;
			sequence_note(tracker, (uint16_t)(card[0] >> 16), (uint16_t)card[0], card[1],
				      card[2]);
		}
		put_case(tracker);
		free(tracker);
	}
	return 0;
}
