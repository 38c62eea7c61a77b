// SPDX-License-Identifier: MIT
// Drops privileges, and checks at once that the ordinary user will be able to rename the summary at the end.
#include "privileges.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../lib/privileges.h"
#include "../../lib/report.h"

static int check_directory(const char *user, const char *path)
{
	char *copy = strdup(path);
	int err = !copy ? -ENOMEM : access(dirname(copy), W_OK | X_OK) ? -errno : 0;

	if (err)
		complain("--drop-user %s: that user must be able to rename the summary %s into place at the "
			 "end: %s: give the directory to that user (chown)",
			 user, path, strerror(-err));
	free(copy);
	return err;
}

int privileges_drop(const char *user, const char *path)
{
	int err = become_user(user);

	if (err == -ENOENT)
		complain("--drop-user %s: there is no such user on this machine", user);
	else if (err)
		complain("--drop-user %s: becoming that user: %s: start as root", user, strerror(-err));
	return err ? err : check_directory(user, path);
}
