// SPDX-License-Identifier: MIT
// Gathers records in one buffer. A full or flushed buffer becomes one block of the raw file.
#include "block_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../lib/report.h"

int block_writer_open(struct block_writer *writer, const char *path, uint16_t kind, uint16_t record_version,
		      uint16_t record_bytes)
{
	int err;

	*writer = (struct block_writer){
		.path = path,
		.kind = kind,
		.record_version = record_version,
		.record_bytes = record_bytes,
		.capacity = BLOCK_MAX_PAYLOAD_BYTES / record_bytes,
		.buffer = malloc(BLOCK_HEADER_BYTES + BLOCK_MAX_PAYLOAD_BYTES),
	};
	err = writer->buffer ? raw_file_create(&writer->file, path) : -ENOMEM;
	if (err) {
		complain("creating %s: %s%s", path, strerror(-err),
			 err == -EEXIST ? "; a result is never overwritten: give another --output" : "");
		free(writer->buffer);
		writer->buffer = NULL;
	}
	return err;
}

static void count_failure(struct block_writer *writer, int err)
{
	if (!writer->write_errors++)
		complain("appending %" PRIu32 " records to %s: %s; these records are lost, "
			 "later records are still tried: free some space",
			 writer->gathered, writer->path, strerror(-err));
	writer->unwritten += writer->gathered;
	if (writer->file.torn)
		complain("cutting the torn block off %s at byte %" PRIu64
			 ": %s; readers stop there unless a later block overwrites the torn one",
			 writer->path, writer->file.bytes, strerror(-writer->file.torn));
}

void block_writer_flush(struct block_writer *writer)
{
	struct block_header header = {
		.kind = writer->kind,
		.record_version = writer->record_version,
		.record_bytes = writer->record_bytes,
		.record_count = writer->gathered,
		.first_record = writer->next_record,
		.lost_records = writer->lost_records,
	};
	int err;

	if (!writer->gathered)
		return;
	clock_offset_sample(&writer->clock);
	header.realtime_minus_mono_ns = (uint64_t)writer->clock.realtime_minus_mono_ns;
	err = raw_file_append(&writer->file, writer->buffer, header);
	if (err) {
		count_failure(writer, err);
	} else {
		writer->stored += writer->gathered;
		writer->blocks++;
	}
	writer->next_record += writer->gathered;
	writer->gathered = 0;
}

void block_writer_discard(struct block_writer *writer)
{
	if (!writer->buffer)
		return;
	close(writer->file.fd);
	unlink(writer->path);
	free(writer->buffer);
	writer->buffer = NULL;
}

int block_writer_close(struct block_writer *writer)
{
	if (!writer->buffer)
		return 0;
	block_writer_flush(writer);
	if (fdatasync(writer->file.fd) && errno != EINVAL &&
	    errno != EROFS) { /* EINVAL, EROFS: a pipe or device, nothing to sync */
		complain("syncing %s: %s; its last records may be missing after a power cut", writer->path,
			 strerror(errno));
		writer->write_errors++;
	}
	close(writer->file.fd);
	free(writer->buffer);
	writer->buffer = NULL;
	return writer->write_errors ? -EIO : 0;
}
