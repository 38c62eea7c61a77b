/* SPDX-License-Identifier: MIT
 * The raw file. A thread appends whole blocks from a fixed set of preallocated buffers, and numbers their records:
 * several receivers give blocks, each in its own order. A stalled disk stops the receivers only when all buffers are
 * full.
 *
 * Durability: a written block is in the page cache and survives the death of this process. Write-back starts early,
 * but fdatasync is called only at the end, so a power failure can lose the last seconds.
 */
#ifndef COLLECTOR_WRITER_H
#define COLLECTOR_WRITER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "intake.h"
#include "wire/raw_file.h"

/* A buffer. The caller of writer_take owns the buffer until writer_give. */
struct block {
	struct block *next;
	uint8_t *bytes; /* BLOCK_HEADER_BYTES for the writer, then room for BLOCK_RECORDS records */
	unsigned int records;
	uint64_t kernel_drops; /* since the receiver's block before this one */
	int64_t realtime_minus_mono_ns;
	uint64_t opened_mono_ns;
};

static inline uint8_t *block_place(const struct block *block)
{
	return block->bytes + BLOCK_HEADER_BYTES + (size_t)block->records * RECORD_BYTES;
}

struct writer_counts {
	uint64_t stored; /* records in the file */
	uint64_t lost;	 /* records of blocks that could not be written */
	uint64_t blocks;
	uint64_t bytes; /* the file's length */
	uint64_t write_errors;
	uint64_t kernel_drops; /* of the blocks so far */
};

struct writer {
	const char *path;
	struct raw_file file;
	bool running;
	bool closing;
	uint64_t write_back_bytes; /* write-back has been started up to here */
	uint8_t *memory;
	size_t memory_bytes;
	struct block *blocks;
	struct block *free;		/* last in, first out: its memory is still in the cache */
	struct block *full, **full_end; /* in order */
	struct writer_counts counts;	/* lock protects counts, both lists and closing */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t thread;
};

/* Creates path, which must not exist, and starts the thread. path NULL: buffers only, without a writer. Returns 0, or
 * -errno after one line; then nothing is left open. */
int writer_open(struct writer *writer, const char *path, unsigned int buffers);

/* An empty buffer; NULL: all are full and wait for the disk. */
struct block *writer_take(struct writer *writer);

/* Queues a block for writing, or frees it if it is empty. */
void writer_give(struct writer *writer, struct block *block);

struct writer_counts writer_counts(struct writer *writer);

/* Waits until all blocks are written and synced to the disk. Returns 0, or -errno, after one line, if a block is lost
 * or the file cannot be synced or closed.
 */
int writer_close(struct writer *writer);

#endif
