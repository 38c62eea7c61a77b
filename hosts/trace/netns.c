// SPDX-License-Identifier: MIT
// Enters the namespace with setns(2), does the work, and returns to the original namespace.
#include "netns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

int netns_call(const char *path, int (*work)(void *context), void *context)
{
	int original = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int target = open(path, O_RDONLY | O_CLOEXEC);
	int err = original < 0 || target < 0 || setns(target, CLONE_NEWNET) ? -errno : 0;

	if (!err) {
		err = work(context);
		if (setns(original, CLONE_NEWNET))
			err = -errno;
	}
	if (original >= 0)
		close(original);
	if (target >= 0)
		close(target);
	return err;
}
