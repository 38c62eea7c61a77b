// SPDX-License-Identifier: MIT
// Calls fsync before rename: otherwise the renamed file could be empty after a power failure.
#include "commit.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "report.h"

static const char suffix[] = ".partial";

int report_check(const char *path)
{
	char directory[PATH_MAX];
	const char *slash = strrchr(path, '/');
	int err = strlen(path) + sizeof(suffix) > sizeof(directory) ? -ENAMETOOLONG : 0;

	if (!err) {
		snprintf(directory, sizeof(directory), "%.*s", slash ? (int)(slash - path) + 1 : 1,
			 slash ? path : ".");
		err = access(directory, W_OK | X_OK) ? -errno : 0;
	}
	if (err)
		complain("%s cannot be written: %s; give a file in a writable directory", path,
			 strerror(-err));
	return err;
}

int report_write(const char *path, void (*print)(FILE *file, const void *context), const void *context)
{
	char partial[PATH_MAX];
	FILE *file;
	int err;

	if (snprintf(partial, sizeof(partial), "%s%s", path, suffix) >= (int)sizeof(partial))
		errno = ENAMETOOLONG, file = NULL;
	else
		file = fopen(partial, "we");
	err = file ? 0 : -errno;
	if (file) {
		print(file, context);
		/* fflush does not report a buffer that could not be written earlier; ferror does. */
		err = fflush(file) || fsync(fileno(file)) ? -errno : ferror(file) ? -EIO : 0;
		if (fclose(file) && !err)
			err = -errno;
		if (!err && rename(partial, path))
			err = -errno;
		if (err)
			unlink(partial);
	}
	if (err)
		complain("writing %s: %s; give a writable directory with free space", path, strerror(-err));
	return err;
}
