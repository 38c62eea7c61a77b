// SPDX-License-Identifier: MIT
// Checks each datagram, converts its stamp and notes its sequence number. The other fields of a postcard are stored
// unchecked: readers check them.
#include "intake.h"

#include <stddef.h>
#include <string.h>

#include "lib/clock_ns.h"

static bool is_postcard(struct intake *intake, const uint8_t *bytes, uint32_t length)
{
	if (length < POSTCARD_BYTES)
		intake->short_count++;
	else if (bytes[offsetof(struct postcard_layout, version)] != POSTCARD_VERSION)
		intake->bad_version++;
	else if (length > POSTCARD_BYTES)
		intake->trailing++;
	else
		return true;
	return false;
}

static uint32_t take_field(const uint8_t *postcard, size_t offset, unsigned int bytes)
{
	const uint8_t *at = postcard + offset;

	return (uint32_t)take_be(&at, bytes);
}

static void note_sequence(struct sequence_tracker *sequences, const uint8_t *postcard)
{
	sequence_note(sequences,
		      (uint16_t)take_field(postcard, offsetof(struct postcard_layout, switch_id), 2),
		      (uint16_t)take_field(postcard, offsetof(struct postcard_layout, egress_port), 2),
		      postcard[offsetof(struct postcard_layout, flags)] & POSTCARD_AT_INGRESS,
		      take_field(postcard, offsetof(struct postcard_layout, card_seq), 4));
}

static void note_sequences(struct sequence_tracker *sequences, const uint8_t *records, const uint8_t *end)
{
	pthread_mutex_lock(&sequences->lock);
	for (; records < end; records += RECORD_BYTES)
		note_sequence(sequences, records + BLOCK_STAMP_BYTES);
	pthread_mutex_unlock(&sequences->lock);
}

static void put_stamp(struct intake *intake, uint8_t *record, const struct arrival *arrival,
		      int64_t realtime_minus_mono_ns)
{
	uint64_t mono_ns = (uint64_t)(arrival->realtime_ns - realtime_minus_mono_ns);

	if (!arrival->realtime_ns) {
		mono_ns = mono_now_ns();
		intake->unstamped++;
	}
	if (!intake->accepted || mono_ns < intake->first_rx_mono_ns)
		intake->first_rx_mono_ns = mono_ns;
	if (mono_ns > intake->last_rx_mono_ns)
		intake->last_rx_mono_ns = mono_ns;
	put_le(&record, mono_ns, BLOCK_STAMP_BYTES);
}

unsigned int intake_batch(struct intake *intake, uint8_t *records, const struct arrival *arrivals,
			  unsigned int count, int64_t realtime_minus_mono_ns)
{
	const uint8_t *from = records;
	uint8_t *to = records;

	for (unsigned int index = 0; index < count; index++, from += RECORD_BYTES) {
		if (arrivals[index].is_stranger)
			continue;
		intake->received++;
		if (!is_postcard(intake, from + BLOCK_STAMP_BYTES, arrivals[index].bytes))
			continue;
		if (to != from)
			memcpy(to, from, RECORD_BYTES);
		put_stamp(intake, to, &arrivals[index], realtime_minus_mono_ns);
		intake->accepted++;
		to += RECORD_BYTES;
	}
	note_sequences(intake->sequences, records, to);
	return (unsigned int)(to - records) / RECORD_BYTES;
}
