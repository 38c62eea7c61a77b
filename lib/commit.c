// SPDX-License-Identifier: MIT
// fsync before rename, or after a power cut the new name could have no contents.
#include "commit.h"

#include <errno.h>
#include <unistd.h>

int commit_file(FILE *file, const char *partial, const char *path)
{
	int err = fflush(file) || fsync(fileno(file)) ? -errno : 0;

	/* A buffer that could not be written earlier is forgotten by fflush, but not by this. */
	if (!err && ferror(file))
		err = -EIO;
	if (fclose(file) && !err)
		err = -errno;
	if (!err && rename(partial, path))
		err = -errno;
	return err;
}
