// SPDX-License-Identifier: MIT
// setresuid to an ordinary user. The process can neither return to root nor gain privileges through exec.
#include "privileges.h"

#include <errno.h>
#include <grp.h>
#include <libgen.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "report.h"

/* From root, setresuid clears the permitted, effective and ambient capabilities. */
static int become(uid_t user, gid_t group)
{
	return setgroups(0, NULL) || setresgid(group, group, group) || setresuid(user, user, user) ? -errno
												   : 0;
}

static int gain_nothing(void)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;
}

int become_user(const char *user)
{
	const struct passwd *entry = getpwnam(user);
	int err;

	if (!entry)
		return -ENOENT;
	err = become(entry->pw_uid, entry->pw_gid);
	return err ? err : gain_nothing();
}

int drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};

	return syscall(SYS_capset, &header, none) ? -errno : gain_nothing();
}

int drop_privileges(const char *file)
{
	char *copy = file ? strdup(file) : NULL;
	struct stat directory = {0};
	int err = file && (!copy || stat(dirname(copy), &directory)) ? -errno : 0;

	if (!err && !geteuid() && directory.st_uid)
		err = become(directory.st_uid, directory.st_gid);
	if (!err)
		err = drop_capabilities();
	if (err)
		complain("giving up privileges, as the owner of the directory of %s: %s",
			 file ? file : "no file", strerror(-err));
	free(copy);
	return err;
}
