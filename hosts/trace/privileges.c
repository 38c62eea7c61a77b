// SPDX-License-Identifier: MIT
// setresuid to an ordinary user; no way back, and no new privileges through exec.
#include "privileges.h"

#include <errno.h>
#include <grp.h>
#include <libgen.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "report.h"

static int check_directory(const char *user, const char *path)
{
	char *copy = strdup(path);
	int err = !copy ? -ENOMEM : access(dirname(copy), W_OK | X_OK) ? -errno : 0;

	if (err)
		complain("--drop-user %s: the summary %s is renamed into place at the end, and its "
			 "directory: %s: "
			 "give the directory to that user (chown)",
			 user, path, strerror(-err));
	free(copy);
	return err;
}

int privileges_drop(const char *user, const char *path)
{
	const struct passwd *entry;

	errno = 0;
	entry = getpwnam(user);
	if (!entry) {
		complain("--drop-user %s: there is no such user on this machine", user);
		return errno ? -errno : -ENOENT;
	}
	if (setgroups(0, NULL) || setresgid(entry->pw_gid, entry->pw_gid, entry->pw_gid) ||
	    setresuid(entry->pw_uid, entry->pw_uid, entry->pw_uid) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
		complain("--drop-user %s: becoming that user: %s: start as root", user, strerror(errno));
		return -errno;
	}
	return check_directory(user, path);
}
