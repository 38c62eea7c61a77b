/* SPDX-License-Identifier: MIT
 * A raw file of blocks (wire/block.def) being appended to. Records are gathered in memory and leave as one
 * whole block, when it is full or when the caller flushes. A block that cannot be written leaves the file as
 * it was before it: what is on disk is always whole blocks, and the next block's first_record shows what is
 * missing.
 */
#ifndef TRACE_BLOCK_WRITER_H
#define TRACE_BLOCK_WRITER_H

#include <stdint.h>

#include "../../wire/raw_file.h"

struct block_writer {
	struct raw_file file;
	const char *path;
	uint16_t kind;
	uint16_t record_version;
	uint16_t record_bytes;
	uint32_t gathered;     /* records in the buffer */
	uint32_t capacity;     /* records a block can have */
	uint8_t *buffer;       /* header, then records */
	uint64_t next_record;  /* number of the first record in the buffer, unwritten ones counted */
	uint64_t lost_records; /* the caller's: known lost until now, cumulative */
	uint64_t stored;       /* records on disk */
	uint64_t write_errors; /* blocks that could not be written */
	uint64_t unwritten;    /* records in them */
	uint64_t blocks;
};

/* Makes the file, which must not exist. 0 or -errno after one line. */
int block_writer_open(struct block_writer *writer, const char *path, uint16_t kind, uint16_t record_version,
		      uint16_t record_bytes);

/* Writes what has been gathered. Failure is counted; the first is told on stderr. */
void block_writer_flush(struct block_writer *writer);

/* Records handed over so far, wherever they are now. */
static inline uint64_t block_writer_taken(const struct block_writer *writer)
{
	return writer->next_record + writer->gathered;
}

/* Closes and removes a file that nothing was written to; no file open is fine. */
void block_writer_discard(struct block_writer *writer);

/* Flushes and closes. 0, or -EIO when anything is missing from the file. */
int block_writer_close(struct block_writer *writer);

/* Where the next record goes; call block_writer_added when it is there. Never NULL. */
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
