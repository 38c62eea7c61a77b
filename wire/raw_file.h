/* SPDX-License-Identifier: MIT
 * Appends whole blocks to a raw file. Prints nothing: the caller reports and handles failures.
 */
#ifndef WIRE_RAW_FILE_H
#define WIRE_RAW_FILE_H

#include <stdbool.h>

#include "block.h"

struct raw_file {
	int fd;
	int torn;	/* 0, or -errno of the ftruncate that failed to remove a partly written block */
	uint64_t bytes; /* length of the whole blocks; readers stop here if torn */
	bool on_hostfs; /* a file of the host, written from User-Mode Linux */
};

/* Creates the file, which must not exist. Returns 0 or -errno. */
int raw_file_create(struct raw_file *file, const char *path);

/* Appends a block. The records are in block, from BLOCK_HEADER_BYTES on. raw_file_append sets the header's magic,
 * version, payload_bytes and crc32. Returns 0, or -errno with the file unchanged (but see torn). After a failure the
 * caller may try the next block, since space may become free; the gap in first_record shows the lost block.
 */
int raw_file_append(struct raw_file *file, uint8_t *block, struct block_header header);

#endif
