// SPDX-License-Identifier: MIT
// The buffers, the thread that empties them, and the file. A block that cannot be written whole is cut off the file
// and counted as lost. The writer still tries the next block, because space may have been freed. A jump in first_record
// shows the lost blocks.
#include "writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/report.h"

enum {
	PAGE_BYTES = 4096,
	BUFFER_BYTES = (BLOCK_HEADER_BYTES + BLOCK_MAX_PAYLOAD_BYTES + PAGE_BYTES - 1) / PAGE_BYTES *
		PAGE_BYTES,
	/* Write-back starts at this many dirty bytes. The kernel's own limit is gigabytes; reaching it would
	   stall the writer. */
	WRITE_BACK_BYTES = 8 << 20,
};

static int append(struct writer *writer, struct block *block)
{
	const struct writer_counts *counts = &writer->counts; /* only this thread changes them */
	struct block_header header = {
		.kind = BLOCK_POSTCARDS,
		.record_version = POSTCARD_VERSION,
		.record_bytes = RECORD_BYTES,
		.record_count = block->records,
		.first_record = counts->stored + counts->lost,
		.lost_records = counts->kernel_drops + block->kernel_drops + counts->lost,
		.realtime_minus_mono_ns = (uint64_t)block->realtime_minus_mono_ns,
	};
	int err = raw_file_append(&writer->file, block->bytes, header);

	if (err && writer->file.torn)
		complain("taking a torn block off %s: %s; readers stop at byte %llu", writer->path,
			 strerror(-writer->file.torn), (unsigned long long)writer->file.bytes);
	return err;
}

static void start_write_back(struct writer *writer)
{
	uint64_t pending = writer->file.bytes - writer->write_back_bytes;

	if (pending < WRITE_BACK_BYTES)
		return;
	/* Only a hint: a file system may not support it. */
	sync_file_range(writer->file.fd, (off_t)writer->write_back_bytes, (off_t)pending,
			SYNC_FILE_RANGE_WRITE);
	writer->write_back_bytes = writer->file.bytes;
}

static void write_block(struct writer *writer, struct block *block)
{
	int err = append(writer, block);

	pthread_mutex_lock(&writer->lock);
	writer->counts.kernel_drops += block->kernel_drops;
	if (err) {
		/* Only the first error is reported; write_errors counts all. */
		if (!writer->counts.write_errors++)
			complain("writing %s: %s; %u postcards lost, more may follow; earlier blocks are "
				 "complete",
				 writer->path, strerror(-err), block->records);
		writer->counts.lost += block->records;
	} else {
		writer->counts.stored += block->records;
		writer->counts.blocks++;
		writer->counts.bytes = writer->file.bytes;
	}
	block->next = writer->free;
	writer->free = block;
	pthread_mutex_unlock(&writer->lock);
	start_write_back(writer);
}

static void *write_blocks(void *argument)
{
	struct writer *writer = argument;
	struct block *block;

	for (;;) {
		pthread_mutex_lock(&writer->lock);
		while (!writer->full && !writer->closing)
			pthread_cond_wait(&writer->wake, &writer->lock);
		block = writer->full;
		if (block) {
			writer->full = block->next;
			if (!writer->full)
				writer->full_end = &writer->full;
		}
		pthread_mutex_unlock(&writer->lock);
		if (!block)
			return NULL;
		write_block(writer, block);
	}
}

/* Touches the buffers, so that the receiver never waits for a page fault. */
static int allocate(struct writer *writer, unsigned int buffers)
{
	writer->memory_bytes = (size_t)buffers * BUFFER_BYTES;
	writer->blocks = calloc(buffers, sizeof(*writer->blocks));
	if (!writer->blocks)
		return -ENOMEM;
	writer->memory =
		mmap(NULL, writer->memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (writer->memory == MAP_FAILED) {
		writer->memory = NULL;
		return -ENOMEM;
	}
	madvise(writer->memory, writer->memory_bytes, MADV_HUGEPAGE);
	memset(writer->memory, 0, writer->memory_bytes);
	for (unsigned int index = 0; index < buffers; index++) {
		writer->blocks[index].bytes = writer->memory + (size_t)index * BUFFER_BYTES;
		writer->blocks[index].next = writer->free;
		writer->free = &writer->blocks[index];
	}
	return 0;
}

static void release(struct writer *writer)
{
	if (writer->memory)
		munmap(writer->memory, writer->memory_bytes);
	free(writer->blocks);
}

static int create(struct raw_file *file, const char *path)
{
	int err = raw_file_create(file, path);

	if (!err)
		return 0;
	if (err == -EEXIST)
		complain("creating %s: it exists and is never overwritten: move it away or choose another "
			 "name",
			 path);
	else if (err == -ENOENT)
		complain("creating %s: its directory does not exist: make it first", path);
	else
		complain("creating %s: %s", path, strerror(-err));
	return err;
}

int writer_open(struct writer *writer, const char *path, unsigned int buffers)
{
	int err;

	*writer = (struct writer){.path = path};
	writer->full_end = &writer->full;
	pthread_mutex_init(&writer->lock, NULL);
	pthread_cond_init(&writer->wake, NULL);
	err = allocate(writer, buffers);
	if (err) {
		complain("allocating %u buffers of 1 MiB: %s; ask for fewer with --buffers", buffers,
			 strerror(-err));
		goto fail;
	}
	if (!path)
		return 0;
	err = create(&writer->file, path);
	if (err)
		goto fail;
	err = -pthread_create(&writer->thread, NULL, write_blocks, writer);
	if (err) {
		complain("starting the writer thread: %s", strerror(-err));
		goto fail_file;
	}
	writer->running = true;
	return 0;

fail_file:
	close(writer->file.fd);
	unlink(path);
fail:
	release(writer);
	return err;
}

struct block *writer_take(struct writer *writer)
{
	struct block *block;

	pthread_mutex_lock(&writer->lock);
	block = writer->free;
	if (block)
		writer->free = block->next;
	pthread_mutex_unlock(&writer->lock);
	if (block)
		block->records = 0;
	return block;
}

void writer_give(struct writer *writer, struct block *block)
{
	pthread_mutex_lock(&writer->lock);
	if (block->records) {
		block->next = NULL;
		*writer->full_end = block;
		writer->full_end = &block->next;
		pthread_cond_signal(&writer->wake);
	} else {
		block->next = writer->free;
		writer->free = block;
	}
	pthread_mutex_unlock(&writer->lock);
}

struct writer_counts writer_counts(struct writer *writer)
{
	struct writer_counts counts;

	pthread_mutex_lock(&writer->lock);
	counts = writer->counts;
	pthread_mutex_unlock(&writer->lock);
	return counts;
}

int writer_close(struct writer *writer)
{
	int err = 0;

	if (writer->running) {
		pthread_mutex_lock(&writer->lock);
		writer->closing = true;
		pthread_cond_signal(&writer->wake);
		pthread_mutex_unlock(&writer->lock);
		pthread_join(writer->thread, NULL);
		if (fdatasync(writer->file.fd)) {
			err = -errno;
			writer->counts.write_errors++;
			complain("bringing %s to the disk: %s", writer->path, strerror(-err));
		}
		if (close(writer->file.fd) && !err) {
			err = -errno;
			writer->counts.write_errors++;
			complain("closing %s: %s", writer->path, strerror(-err));
		}
		if (writer->counts.write_errors && !err)
			err = -EIO;
	}
	release(writer);
	pthread_cond_destroy(&writer->wake);
	pthread_mutex_destroy(&writer->lock);
	return err;
}
