/* SPDX-License-Identifier: MIT
 * Appends blocks (wire/block.def) to a raw file. Records are gathered in memory and written as one block when
 * the buffer is full or the caller flushes. A partly written block is cut off again, so the file has whole blocks
 * only (if the cut fails, the next block overwrites the torn one: wire/raw_file.h). A gap before the next block's
 * first_record shows the missing records.
 */
#ifndef TRACE_BLOCK_WRITER_H
#define TRACE_BLOCK_WRITER_H

#include <stdint.h>

#include "../../lib/clock_offset.h"
#include "../../wire/raw_file.h"

struct block_writer {
	struct raw_file file;
	struct clock_offset clock; /* sampled once per block */
	const char *path;
	uint16_t kind;
	uint16_t record_version;
	uint16_t record_bytes;
	uint32_t gathered;     /* records in the buffer */
	uint32_t capacity;     /* records per block */
	uint8_t *buffer;       /* header, then records */
	uint64_t next_record;  /* index of the buffer's first record, counting unwritten records */
	uint64_t lost_records; /* set by the caller: losses known so far, cumulative */
	uint64_t stored;       /* records on disk */
	uint64_t write_errors; /* blocks that could not be written, and a failed sync */
	uint64_t unwritten;    /* records in those blocks */
	uint64_t blocks;
};

/* Creates the file, which must not exist. Returns 0, or -errno after one message. */
int block_writer_open(struct block_writer *writer, const char *path, uint16_t kind, uint16_t record_version,
		      uint16_t record_bytes);

/* Writes the buffer as one block. Failures are counted. The first one is reported on stderr, and so is every torn block
 * that could not be cut off.
 */
void block_writer_flush(struct block_writer *writer);

/* Records added so far: stored, unwritten or still in the buffer. */
static inline uint64_t block_writer_taken(const struct block_writer *writer)
{
	return writer->next_record + writer->gathered;
}

/* Closes and removes the file, to which nothing was written. Does nothing if no file is open. */
void block_writer_discard(struct block_writer *writer);

/* Flushes, syncs and closes. Returns 0, or -EIO if a block could not be written or the file could not be synced. */
int block_writer_close(struct block_writer *writer);

/* Space for the next record: fill it, then call block_writer_added. Never NULL. */
static inline uint8_t *block_writer_slot(struct block_writer *writer)
{
	return writer->buffer + BLOCK_HEADER_BYTES + (uint64_t)writer->gathered * writer->record_bytes;
}

static inline void block_writer_added(struct block_writer *writer)
{
	if (++writer->gathered == writer->capacity)
		block_writer_flush(writer);
}

#endif
