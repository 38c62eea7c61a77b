// SPDX-License-Identifier: MIT
// Uses tracefs where it is mounted. Else makes a detached mount (fsmount, Linux 5.2), which has no path and ends with
// its descriptor.
#include "tracefs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../lib/report.h"

static const char *const PATHS[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

static int open_mounted(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statfs status;

	if (fd >= 0 && (fstatfs(fd, &status) || status.f_type != TRACEFS_MAGIC)) {
		close(fd);
		return -ENOENT;
	}
	return fd < 0 ? -errno : fd;
}

static int open_unmounted(void)
{
	int context = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC);
	int fd, err;

	if (context < 0)
		return -errno;
	fd = syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0)
		     ? -1
		     : (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC,
				    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	err = errno;
	close(context);
	return fd < 0 ? -err : fd;
}

int tracefs_open(void)
{
	int fd = -ENOENT;

	for (size_t i = 0; fd < 0 && fd != -EACCES && i < sizeof(PATHS) / sizeof(PATHS[0]); i++)
		fd = open_mounted(PATHS[i]);
	if (fd < 0 && fd != -EACCES)
		fd = open_unmounted();
	if (fd == -EPERM || fd == -EACCES)
		complain("opening tracefs: not permitted: run as root");
	else if (fd == -ENODEV)
		complain("opening tracefs: this kernel has none: boot one with CONFIG_TRACING, or with BTF "
			 "for --source bpf");
	else if (fd < 0)
		complain("opening tracefs: %s: mount it (mount -t tracefs tracefs %s)", strerror(-fd),
			 PATHS[0]);
	return fd;
}

int tracefs_write(int dir, const char *path, const char *text)
{
	int fd = openat(dir, path, O_WRONLY | O_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	err = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return err;
}

int tracefs_read(int dir, const char *path, char *text)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	size_t length = 0;
	ssize_t got;
	int err;

	if (fd < 0)
		return -errno;
	do {
		got = read(fd, text + length, TRACEFS_TEXT_BYTES - 1 - length);
		length += got > 0 ? (size_t)got : 0;
	} while (got > 0 && length < TRACEFS_TEXT_BYTES - 1);
	err = got < 0 ? -errno : got > 0 ? -EFBIG : 0;
	text[length] = '\0';
	close(fd);
	return err;
}
