// SPDX-License-Identifier: MIT
// In simulated time CLOCK_REALTIME equals CLOCK_MONOTONIC, so the blocks' offset is 0.
#include "records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAYLOAD_BYTES = 1 << 18 };

int records_create(struct records *records, const char *path, uint16_t kind, uint16_t version,
		   uint16_t record_bytes)
{
	int err = raw_file_create(&records->file, path);

	if (err)
		return err;
	records->header = (struct block_header){
		.kind = kind,
		.record_version = version,
		.record_bytes = record_bytes,
	};
	records->stored = 0;
	records->block = malloc(BLOCK_HEADER_BYTES + PAYLOAD_BYTES);
	return records->block ? 0 : -ENOMEM;
}

static int flush(struct records *records)
{
	int err;

	if (!records->header.record_count)
		return 0;
	err = raw_file_append(&records->file, records->block, records->header);
	records->header.first_record += records->header.record_count;
	records->header.record_count = 0;
	return err;
}

/* The place of the next record. A full block is written first; *err is the error of this write. */
static uint8_t *slot(struct records *records, int *err)
{
	uint32_t used = records->header.record_count * records->header.record_bytes;

	*err = used + records->header.record_bytes > PAYLOAD_BYTES ? flush(records) : 0;
	used = records->header.record_count++ * records->header.record_bytes;
	records->stored++;
	return records->block + BLOCK_HEADER_BYTES + used;
}

int records_add_postcard(struct records *records, uint64_t rx_mono_ns, const struct postcard *card)
{
	int err;
	uint8_t *at = slot(records, &err);

	put_le(&at, rx_mono_ns, BLOCK_STAMP_BYTES);
	postcard_encode(at, card);
	return err;
}

static int add(struct records *records, const void *record)
{
	int err;

	memcpy(slot(records, &err), record, records->header.record_bytes);
	return err;
}

int records_add_tcp(struct records *records, const struct tcp_record *record)
{
	return add(records, record);
}

int records_add_goodput(struct records *records, const struct goodput_record *record)
{
	return add(records, record);
}

int records_add_flow(struct records *records, const struct flow_record *record)
{
	return add(records, record);
}

int records_close(struct records *records)
{
	int err = flush(records);

	free(records->block);
	if (close(records->file.fd) && !err)
		err = -errno;
	return err;
}
