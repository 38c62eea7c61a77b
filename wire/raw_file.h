/* SPDX-License-Identifier: MIT
 * A raw file being appended to, whole blocks only. Says nothing to anybody: what to do about a failure, and
 * what to tell, is the caller's.
 */
#ifndef WIRE_RAW_FILE_H
#define WIRE_RAW_FILE_H

#include "block.h"

struct raw_file {
	int fd;
	int torn;	/* 0, or -errno: why the last block that failed could not be cut off again */
	uint64_t bytes; /* the file's length: whole blocks; readers stop there if torn */
};

/* Makes the file, which must not exist. 0 or -errno. */
int raw_file_create(struct raw_file *file, const char *path);

/* Appends the block whose records stand in block from BLOCK_HEADER_BYTES on. The header's magic, version,
 * payload_bytes and crc32 are filled in here. 0, or -errno and the file is as it was (but see torn); the next
 * block may be tried, since space may come back, and its first_record shows the hole.
 */
int raw_file_append(struct raw_file *file, uint8_t *block, struct block_header header);

#endif
