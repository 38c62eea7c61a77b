/* SPDX-License-Identifier: MIT
 * Privileges and scheduling. At the start the process needs CAP_NET_RAW (packet sockets) and CAP_NET_ADMIN
 * (SO_SNDBUFFORCE); --drop-user gives all privileges up.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../lib/privileges.h"
#include "../../lib/report.h"
#include "shell.h"

enum {
	BOOST_NICE = -20,
	BOOST_SLICE_NS =
		100000, /* the shortest that EEVDF accepts: the deadline is then early, and so is the wake-up */
};

int privileges_check(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	if (!syscall(SYS_capget, &header, data) && data[0].effective & 1u << CAP_NET_RAW)
		return 0;
	complain("opening packet sockets: no CAP_NET_RAW: run softswitch as root");
	return -EPERM;
}

static void warn(const char *action)
{
	complain("%s: %s (going on without)", action, strerror(errno));
}

/* No real-time priority: the kernel throttles real-time tasks, and throttling increases the largest lateness. */
void privileges_schedule(bool boost)
{
	struct sched_attr attributes = {
		.size = sizeof(attributes),
		.sched_policy = SCHED_NORMAL,
		.sched_nice = BOOST_NICE,
		.sched_runtime = BOOST_SLICE_NS,
	};

	if (prctl(PR_SET_TIMERSLACK, 1))
		warn("setting the timer slack to 1 ns");
	if (boost && syscall(SYS_sched_setattr, 0, &attributes, 0))
		warn("setting nice -20 and a slice of 100 us");
}

void privileges_lock_memory(void)
{
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		warn("locking memory");
}

int privileges_drop(const char *user)
{
	int error = become_user(user);

	if (error == -ENOENT)
		complain("--drop-user %s: no such user", user);
	else if (error)
		complain("dropping privileges to %s: %s", user, strerror(-error));
	return error;
}
