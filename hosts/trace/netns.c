// SPDX-License-Identifier: MIT
// setns(2) there and back.
#include "netns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

int netns_call(const char *path, int (*work)(void *context), void *context)
{
	int here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int there = open(path, O_RDONLY | O_CLOEXEC);
	int err = here < 0 || there < 0 || setns(there, CLONE_NEWNET) ? -errno : 0;

	if (!err) {
		err = work(context);
		if (setns(here, CLONE_NEWNET))
			err = -errno;
	}
	if (here >= 0)
		close(here);
	if (there >= 0)
		close(there);
	return err;
}
