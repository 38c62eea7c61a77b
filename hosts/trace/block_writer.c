// SPDX-License-Identifier: MIT
// Blocks of a raw file, each written by one append; a failed append is cut off again.
#include "block_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "report.h"

int block_writer_open(struct block_writer *writer, const char *path, uint16_t kind, uint16_t record_version,
		      uint16_t record_bytes)
{
	*writer = (struct block_writer){
		.path = path,
		.kind = kind,
		.record_version = record_version,
		.record_bytes = record_bytes,
		.capacity = BLOCK_MAX_PAYLOAD_BYTES / record_bytes,
		.buffer = malloc(BLOCK_HEADER_BYTES + BLOCK_MAX_PAYLOAD_BYTES),
	};
	writer->fd =
		writer->buffer ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644) : -1;
	if (writer->fd < 0) {
		int err = errno;

		complain("creating %s: %s%s", path, strerror(err),
			 err == EEXIST ? "; a result is never overwritten: give another --output" : "");
		free(writer->buffer);
		writer->buffer = NULL;
		return -err;
	}
	return 0;
}

static int64_t realtime_minus_mono_ns(void)
{
	struct timespec mono, real;

	clock_gettime(CLOCK_MONOTONIC, &mono);
	clock_gettime(CLOCK_REALTIME, &real);
	return (real.tv_sec - mono.tv_sec) * 1000000000LL + real.tv_nsec - mono.tv_nsec;
}

static int write_all(int fd, const uint8_t *data, size_t length)
{
	while (length) {
		ssize_t written = write(fd, data, length);

		if (written < 0 && errno != EINTR)
			return -errno;
		if (written > 0) {
			data += written;
			length -= (size_t)written;
		}
	}
	return 0;
}

static void count_failure(struct block_writer *writer, int err)
{
	if (!writer->write_errors++)
		complain("appending %" PRIu32
			 " records to %s: %s; they are lost, later ones are still tried: free some space",
			 writer->gathered, writer->path, strerror(-err));
	writer->unwritten += writer->gathered;
	if (ftruncate(writer->fd, (off_t)writer->bytes))
		complain("cutting the torn block off %s at %" PRIu64 ": %s; readers stop there", writer->path,
			 writer->bytes, strerror(errno));
}

void block_writer_flush(struct block_writer *writer)
{
	uint32_t payload_bytes = writer->gathered * writer->record_bytes;
	size_t length = BLOCK_HEADER_BYTES + payload_bytes;
	struct block_header header = {
		.magic = BLOCK_MAGIC,
		.version = BLOCK_VERSION,
		.kind = writer->kind,
		.record_version = writer->record_version,
		.record_bytes = writer->record_bytes,
		.record_count = writer->gathered,
		.payload_bytes = payload_bytes,
		.first_record = writer->next_record,
		.lost_records = writer->lost_records,
		.realtime_minus_mono_ns = (uint64_t)realtime_minus_mono_ns(),
	};
	int err;

	if (!writer->gathered)
		return;
	block_encode(writer->buffer, &header);
	header.crc32 = (uint32_t)crc32(0, writer->buffer, (uInt)length);
	block_encode(writer->buffer, &header);

	err = write_all(writer->fd, writer->buffer, length);
	if (err) {
		count_failure(writer, err);
	} else {
		writer->stored += writer->gathered;
		writer->bytes += length;
		writer->blocks++;
	}
	writer->next_record += writer->gathered;
	writer->gathered = 0;
}

void block_writer_discard(struct block_writer *writer)
{
	if (!writer->buffer)
		return;
	close(writer->fd);
	unlink(writer->path);
	free(writer->buffer);
	writer->buffer = NULL;
}

int block_writer_close(struct block_writer *writer)
{
	if (!writer->buffer)
		return 0;
	block_writer_flush(writer);
	if (fdatasync(writer->fd) && errno != EINVAL &&
	    errno != EROFS) { /* those: a pipe or device, nothing to sync */
		complain("syncing %s: %s; its last records may be missing after a power cut", writer->path,
			 strerror(errno));
		writer->write_errors++;
	}
	close(writer->fd);
	free(writer->buffer);
	writer->buffer = NULL;
	return writer->write_errors ? -EIO : 0;
}
