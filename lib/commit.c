// SPDX-License-Identifier: MIT
// Calls fsync before rename: otherwise the renamed file could be empty after a power failure.
#include "commit.h"

#include <errno.h>
#include <unistd.h>

int commit_file(FILE *file, const char *partial, const char *path)
{
	int err = fflush(file) || fsync(fileno(file)) ? -errno : 0;

	/* fflush does not report a buffer that could not be written earlier; ferror does. */
	if (!err && ferror(file))
		err = -EIO;
	if (fclose(file) && !err)
		err = -errno;
	if (!err && rename(partial, path))
		err = -errno;
	return err;
}
