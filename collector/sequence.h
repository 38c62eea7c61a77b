/* SPDX-License-Identifier: MIT
 * Tracks the sequence numbers of postcards: lost, duplicate and reordered cards. A stream is a (switch, egress port,
 * numbered at ingress or egress), as in wire/postcard.def.
 *
 * A stream unwraps its 32-bit numbers to 64 bits. A bit map has the last SEQUENCE_WINDOW numbers: a late card fills
 * its gap, a duplicate finds its bit set. Memory is bounded for any input.
 */
#ifndef COLLECTOR_SEQUENCE_H
#define COLLECTOR_SEQUENCE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	SEQUENCE_WINDOW = 1
		<< 18,		/* 32 KiB for each stream; receivers may differ by 32 ms at 8 M postcards/s */
	SEQUENCE_STREAMS = 256, /* cards of further streams are untracked; 8 MiB in all */
	SEQUENCE_SLOTS = 1024,	/* hash table, at most a quarter full */
};

struct sequence_stream {
	uint16_t switch_id;
	uint16_t egress_port;
	bool at_ingress;
	bool suspect;	      /* the last card was too late: perhaps the first after a restart */
	uint32_t suspect_seq; /* the next number, if it was a restart */
	uint64_t first,
		next; /* unwrapped and biased (SEQUENCE_BIAS): the lowest number received, and the highest + 1 */
	uint64_t received;   /* cards: in order, duplicate, reordered or too late */
	uint64_t missing;    /* numbers skipped and not received so far, including those before a restart */
	uint64_t gaps;	     /* runs of missing numbers */
	uint64_t duplicates; /* numbers received before */
	uint64_t reordered;  /* received after a higher number, for the first time */
	uint64_t too_late;   /* below the window: late or duplicate, unknown which; fills no gap */
	uint64_t restarts;   /* restarts of the numbering; first and next are since the last one */
	uint64_t received_bits[SEQUENCE_WINDOW / 64];
};

struct sequence_tracker {
	pthread_mutex_t
		lock; /* all receivers note their cards here: the caller takes the lock once for a batch */
	struct sequence_stream *last;
	uint64_t untracked; /* cards of streams beyond SEQUENCE_STREAMS */
	unsigned int stream_count;
	uint16_t slots[SEQUENCE_SLOTS]; /* index into streams + 1; 0: empty */
	struct sequence_stream streams[SEQUENCE_STREAMS];
};

/* Zeroed memory is an empty tracker; calloc provides it without touching the 8 MiB. */
void sequence_note(struct sequence_tracker *tracker, uint16_t switch_id, uint16_t egress_port,
		   bool at_ingress, uint32_t card_seq);

/* The sum over all streams of the uint64_t at this offset. */
uint64_t sequence_total(const struct sequence_tracker *tracker, unsigned long field_offset);

/* Without the bias. The last number may exceed 32 bits: its high bits count the wrap-arounds. */
static inline uint64_t sequence_first(const struct sequence_stream *stream)
{
	return (uint32_t)stream->first;
}

static inline uint64_t sequence_last(const struct sequence_stream *stream)
{
	return sequence_first(stream) + (stream->next - 1 - stream->first);
}

#endif
