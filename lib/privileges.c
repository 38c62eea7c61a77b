// SPDX-License-Identifier: MIT
// setresuid to an ordinary user. The process can neither return to root nor gain privileges through exec.
#include "privileges.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
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

static int keep(unsigned int capabilities)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct kept[_LINUX_CAPABILITY_U32S_3] = {
		{.effective = capabilities, .permitted = capabilities},
	};

	return syscall(SYS_capset, &header, kept) ? -errno : gain_nothing();
}

int drop_capabilities(void)
{
	return keep(0);
}

/* A parent of the directory may be closed to its owner, as /root is to the caller of sudo. */
static bool owner_can_enter(const char *directory, const struct stat *status)
{
	int fd;

	setfsgid(status->st_gid);
	setfsuid(status->st_uid);
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	setfsuid(0);
	setfsgid(0);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

int drop_privileges(const char *file)
{
	char *copy = file ? strdup(file) : NULL, *directory = copy ? dirname(copy) : NULL;
	struct stat status = {0};
	int err = file && (!directory || stat(directory, &status)) ? -errno : 0;
	unsigned int kept = 0;

	if (!err && !geteuid() && status.st_uid) {
		if (setgroups(0, NULL))
			err = -errno;
		else if (owner_can_enter(directory, &status))
			err = become(status.st_uid, status.st_gid);
		else
			kept = 1u << CAP_DAC_OVERRIDE;
	}
	if (!err)
		err = keep(kept);
	if (err)
		complain("giving up privileges, as the owner of the directory of %s: %s",
			 file ? file : "no file", strerror(-err));
	free(copy);
	return err;
}
