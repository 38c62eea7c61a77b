/* SPDX-License-Identifier: MIT
 * Writes a simulation's raw files, in the formats of the collector, the tracer, the sink and tcp_flows.
 */
#ifndef SIMULATOR_RECORDS_H
#define SIMULATOR_RECORDS_H

#ifdef __cplusplus
#define _Static_assert static_assert
extern "C" {
#endif

#include "wire/flow_record.h"
#include "wire/goodput_record.h"
#include "wire/postcard.h"
#include "wire/raw_file.h"
#include "wire/tcp_record.h"

struct records {
	struct raw_file file;
	struct block_header header;
	uint8_t *block;
	uint64_t stored;
};

/* Creates a raw file, which must not exist, for records of a kind of wire/block.def. 0 or -errno. */
int records_create(struct records *records, const char *path, uint16_t kind, uint16_t version,
		   uint16_t record_bytes);

/* Each appends a record. 0 or -errno. */
int records_add_postcard(struct records *records, uint64_t rx_mono_ns, const struct postcard *card);
int records_add_tcp(struct records *records, const struct tcp_record *record);
int records_add_goodput(struct records *records, const struct goodput_record *record);
int records_add_flow(struct records *records, const struct flow_record *record);

/* Writes the last block and closes the file. 0 or -errno. */
int records_close(struct records *records);

#ifdef __cplusplus
}
#endif

#endif
