/* SPDX-License-Identifier: MIT
 * The raw file: a thread that appends whole blocks, fed through a bounded set of preallocated buffers, so
 * that a disk that stalls does not stop the receiver until all of them are full.
 *
 * Durability: a block is with the kernel once written, so it survives the death of this process; write-back
 * is started at once and fdatasync is called at the end, not per block: a power cut may cost the last
 * seconds.
 */
#ifndef COLLECTOR_WRITER_H
#define COLLECTOR_WRITER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "intake.h"
#include "wire/raw_file.h"

/* A buffer. It belongs to who took it until it is given back. */
struct block {
	struct block *next;
	uint8_t *bytes; /* BLOCK_HEADER_BYTES for the writer, then BLOCK_RECORDS places for records */
	unsigned int records;
	uint64_t first_record; /* number of its first record in the file */
	uint64_t kernel_drops; /* before its end */
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
};

struct writer {
	const char *path;
	struct raw_file file;
	bool running;
	bool closing;
	uint64_t write_back_bytes; /* the kernel was told to write back up to here */
	uint8_t *memory;
	size_t memory_bytes;
	struct block *blocks;
	struct block *free;		/* last in, first out: the one that is in the cache */
	struct block *full, **full_end; /* in order */
	struct writer_counts counts;	/* under lock, as the two lists and closing */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t thread;
};

/* Creates path, which must not exist, and starts the thread. path NULL: buffers only, nothing may be given to
 * write. 0 or -errno after one line; then nothing is left. */
int writer_open(struct writer *writer, const char *path, unsigned int buffers);

/* An empty buffer, or NULL: all are full and wait for the disk. */
struct block *writer_take(struct writer *writer);

/* Writes it if it has records, or else frees it. */
void writer_give(struct writer *writer, struct block *block);

struct writer_counts writer_counts(struct writer *writer);

/* Waits until everything given is written and with the disk. 0 or -errno after one line: something was not.
 */
int writer_close(struct writer *writer);

#endif
