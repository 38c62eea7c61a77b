// SPDX-License-Identifier: MIT
// A block is written after the last whole block, so that it overwrites a torn block that could not be truncated.
#include "raw_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <zlib.h>

int raw_file_create(struct raw_file *file, const char *path)
{
	struct statfs system;

	*file = (struct raw_file){.fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)};
	if (file->fd < 0)
		return -errno;
	file->on_hostfs = !fstatfs(file->fd, &system) && system.f_type == HOSTFS_SUPER_MAGIC;
	return 0;
}

static uint32_t encode(uint8_t *block, struct block_header *header)
{
	uint32_t bytes;

	header->magic = BLOCK_MAGIC;
	header->version = BLOCK_VERSION;
	header->payload_bytes = header->record_count * header->record_bytes;
	header->crc32 = 0;
	bytes = BLOCK_HEADER_BYTES + header->payload_bytes;
	block_encode(block, header);
	header->crc32 = (uint32_t)crc32_z(0, block, bytes);
	block_encode(block, header);
	return bytes;
}

static int write_all(const struct raw_file *file, const uint8_t *bytes, uint32_t length)
{
	uint32_t done = 0;
	ssize_t wrote;

	while (done < length) {
		wrote = pwrite(file->fd, bytes + done, length - done, (off_t)(file->bytes + done));
		if (wrote > 0)
			done += (uint32_t)wrote;
		else if (!wrote || errno != EINTR)
			return wrote ? -errno : -EIO;
	}
	return 0;
}

int raw_file_append(struct raw_file *file, uint8_t *block, struct block_header header)
{
	uint32_t bytes = encode(block, &header);
	int err = write_all(file, block, bytes);

	if (err)
		file->torn = ftruncate(file->fd, (off_t)file->bytes) ? -errno : 0;
	else
		file->bytes += bytes;
	/* The host has the block. A copy in the page cache would take a new page of the machine's memory for each 4 KiB,
	 * and the host clears each page at its first use.
	 */
	if (file->on_hostfs)
		posix_fadvise(file->fd, 0, (off_t)file->bytes, POSIX_FADV_DONTNEED);
	return err;
}
