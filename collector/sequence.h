/* SPDX-License-Identifier: MIT
 * What the sequence numbers of postcards say: lost, doubled, out of order. One stream per (switch, egress
 * port, numbered at ingress or egress), as wire/postcard.def numbers them.
 *
 * A stream unwraps its 32-bit numbers to 64 and remembers in a bit map which of the last SEQUENCE_WINDOW
 * numbers came, so a late card is told from a doubled one and fills its gap again. Memory is bounded whatever
 * comes in.
 */
#ifndef COLLECTOR_SEQUENCE_H
#define COLLECTOR_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	SEQUENCE_WINDOW = 1 << 16, /* numbers remembered: 8 KiB a stream, 90 ms at 700 k postcards/s */
	SEQUENCE_STREAMS = 256,	   /* more are counted as untracked: 2 MiB at most */
	SEQUENCE_SLOTS = 1024,	   /* of the hash table, at most a quarter full */
};

struct sequence_stream {
	uint16_t switch_id;
	uint16_t egress_port;
	bool at_ingress;
	bool suspect;	      /* the last card was too late: is it the first of a restarted switch? */
	uint32_t suspect_seq; /* then this one comes next */
	uint64_t first,
		next;	   /* unwrapped and biased (SEQUENCE_BIAS): lowest that came, one above the highest */
	uint64_t received; /* all below included */
	uint64_t missing;  /* numbers between first and next that did not come (yet) */
	uint64_t gaps;	   /* runs of them */
	uint64_t duplicates; /* came before */
	uint64_t reordered;  /* came after a higher one, and had not come before */
	uint64_t too_late;   /* behind the window: late or doubled, cannot be told; fills no gap */
	uint64_t restarts;   /* numbering began anew far behind; first and next are of the last one */
	uint64_t seen[SEQUENCE_WINDOW / 64];
};

struct sequence_tracker {
	struct sequence_stream *last;
	uint64_t untracked; /* cards of streams beyond SEQUENCE_STREAMS */
	unsigned int stream_count;
	uint16_t slots[SEQUENCE_SLOTS]; /* index into streams + 1, 0: empty */
	struct sequence_stream streams[SEQUENCE_STREAMS];
};

/* Zeroed memory is an empty tracker; calloc gives it without touching 2 MiB. */
void sequence_note(struct sequence_tracker *tracker, uint16_t switch_id, uint16_t egress_port,
		   bool at_ingress, uint32_t card_seq);

/* Sums over all streams of the field at this offset, a uint64_t. */
uint64_t sequence_total(const struct sequence_tracker *tracker, unsigned long field_offset);

/* As numbered by the switch; the last may exceed 32 bits: the number of wraps is in it. */
static inline uint64_t sequence_first(const struct sequence_stream *stream)
{
	return (uint32_t)stream->first;
}

static inline uint64_t sequence_last(const struct sequence_stream *stream)
{
	return sequence_first(stream) + (stream->next - 1 - stream->first);
}

#endif
