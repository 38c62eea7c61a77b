// SPDX-License-Identifier: MIT
// Distinguishes gaps, duplicates and reordering in each stream, with bounded work for each card.
#include "sequence.h"

#include <stddef.h>
#include <string.h>

/* Room below the first number, for late cards with lower numbers. */
#define SEQUENCE_BIAS (1ULL << 32)

static bool is_received(const struct sequence_stream *stream, uint64_t seq)
{
	return stream->received_bits[seq % SEQUENCE_WINDOW / 64] >> (seq % 64) & 1;
}

static void mark_received(struct sequence_stream *stream, uint64_t seq)
{
	stream->received_bits[seq % SEQUENCE_WINDOW / 64] |= 1ULL << (seq % 64);
}

/* Clears the bits of `count` numbers that enter the window; the first is `from`. Clears whole words, because a damaged
 * number looks like a large gap: clearing that gap bit by bit would stall the receiver. */
static void forget(struct sequence_stream *stream, uint64_t from, uint64_t count)
{
	uint64_t here;

	if (count >= SEQUENCE_WINDOW) {
		memset(stream->received_bits, 0, sizeof(stream->received_bits));
		return;
	}
	for (; count; from += here, count -= here) {
		here = 64 - from % 64 < count ? 64 - from % 64 : count;
		stream->received_bits[from % SEQUENCE_WINDOW / 64] &= ~(~0ULL >> (64 - here) << (from % 64));
	}
}

static void begin(struct sequence_stream *stream, uint32_t card_seq)
{
	memset(stream->received_bits, 0, sizeof(stream->received_bits));
	stream->first = SEQUENCE_BIAS + card_seq;
	stream->next = stream->first + 1;
	mark_received(stream, stream->first);
}

static void advance(struct sequence_stream *stream, uint64_t seq)
{
	uint64_t skipped = seq - stream->next;

	if (skipped) {
		forget(stream, stream->next, skipped);
		stream->gaps++;
		stream->missing += skipped;
	}
	mark_received(stream, seq);
	stream->next = seq + 1;
}

/* Counts a number within the window. Its neighbours are within the window as well (the caller checks the lower one),
 * and first and next - 1 are marked as received.
 */
static void fill(struct sequence_stream *stream, uint64_t seq)
{
	bool open_below, open_above;

	if (is_received(stream, seq)) {
		stream->duplicates++;
		return;
	}
	stream->reordered++;
	mark_received(stream, seq);
	if (seq < stream->first) {
		stream->missing += stream->first - seq - 1;
		stream->gaps += stream->first - seq > 1;
		stream->first = seq;
		return;
	}
	stream->missing--;
	open_below = !is_received(stream, seq - 1);
	open_above = !is_received(stream, seq + 1);
	if (open_below && open_above)
		stream->gaps++;
	else if (!open_below && !open_above)
		stream->gaps--;
}

/* Two consecutive cards with consecutive numbers far behind mean that the switch restarted its numbering (the rule of
 * RFC 3550, appendix A.1). A single such card is late. */
static void note_too_late(struct sequence_stream *stream, uint32_t card_seq)
{
	if (stream->suspect && card_seq == stream->suspect_seq) {
		stream->suspect = false;
		stream->too_late--;
		stream->restarts++;
		begin(stream, card_seq - 1);
		advance(stream, stream->next);
		return;
	}
	stream->too_late++;
	stream->suspect = true;
	stream->suspect_seq = card_seq + 1;
}

static void note(struct sequence_stream *stream, uint32_t card_seq)
{
	int32_t ahead = (int32_t)(card_seq - (uint32_t)stream->next);

	stream->received++;
	if (ahead < 0 && ahead <= -SEQUENCE_WINDOW) {
		note_too_late(stream, card_seq);
		return;
	}
	stream->suspect = false;
	if (ahead >= 0)
		advance(stream, stream->next + (uint32_t)ahead);
	else
		fill(stream, stream->next + (uint64_t)(int64_t)ahead);
}

static bool same(const struct sequence_stream *stream, uint16_t switch_id, uint16_t egress_port,
		 bool at_ingress)
{
	return stream->egress_port == egress_port && stream->switch_id == switch_id &&
	       stream->at_ingress == at_ingress;
}

/* The stream of a card, created if new. NULL: all SEQUENCE_STREAMS are in use. */
static struct sequence_stream *look_up(struct sequence_tracker *tracker, uint16_t switch_id,
				       uint16_t egress_port, bool at_ingress)
{
	/* The product drops the top bit of switch_id, so the last term adds it again. */
	uint32_t key = ((uint32_t)switch_id << 16 | egress_port) * 2u + at_ingress + (switch_id >> 15);
	uint32_t slot = key * 2654435761u >> 22; /* Knuth's multiplicative hash, the top 10 bits */
	struct sequence_stream *stream;

	_Static_assert(SEQUENCE_SLOTS == 1 << 10, "the hash gives 10 bits");
	for (; tracker->slots[slot]; slot = (slot + 1) % SEQUENCE_SLOTS) {
		stream = &tracker->streams[tracker->slots[slot] - 1];
		if (same(stream, switch_id, egress_port, at_ingress))
			return stream;
	}
	if (tracker->stream_count == SEQUENCE_STREAMS)
		return NULL;
	stream = &tracker->streams[tracker->stream_count++];
	tracker->slots[slot] = (uint16_t)tracker->stream_count;
	stream->switch_id = switch_id;
	stream->egress_port = egress_port;
	stream->at_ingress = at_ingress;
	return stream;
}

void sequence_note(struct sequence_tracker *tracker, uint16_t switch_id, uint16_t egress_port,
		   bool at_ingress, uint32_t card_seq)
{
	struct sequence_stream *stream = tracker->last;

	if (!stream || !same(stream, switch_id, egress_port, at_ingress)) {
		stream = look_up(tracker, switch_id, egress_port, at_ingress);
		if (!stream) {
			tracker->untracked++;
			return;
		}
		tracker->last = stream;
	}
	if (!stream->received) {
		stream->received = 1;
		begin(stream, card_seq);
		return;
	}
	note(stream, card_seq);
}

uint64_t sequence_total(const struct sequence_tracker *tracker, unsigned long field_offset)
{
	uint64_t total = 0;

	for (unsigned int index = 0; index < tracker->stream_count; index++)
		total += *(const uint64_t *)((const char *)&tracker->streams[index] + field_offset);
	return total;
}
