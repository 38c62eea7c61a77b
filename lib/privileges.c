// SPDX-License-Identifier: MIT
// setresuid to an ordinary user. The process can neither return to root nor gain privileges through exec.
#include "privileges.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <unistd.h>

int become_user(const char *user)
{
	const struct passwd *entry = getpwnam(user);

	if (!entry)
		return -ENOENT;
	/* From root, setresuid clears the permitted, effective and ambient capabilities. */
	if (setgroups(0, NULL) || setresgid(entry->pw_gid, entry->pw_gid, entry->pw_gid) ||
	    setresuid(entry->pw_uid, entry->pw_uid, entry->pw_uid) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return 0;
}
