// SPDX-License-Identifier: MIT
// Attaches the program to the root of cgroup v2, where it sees the sockets of every process. The program selects the
// connections of one network namespace by the namespace's cookie. The cgroup hierarchy is a detached mount (fsmount),
// which only this process can reach.
#include "window.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../lib/report.h"
#include "window.skel.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif
enum { FSCONFIG_CREATE = 6 }; /* FSCONFIG_CMD_CREATE of linux/mount.h, which clashes with sys/mount.h */

static int own_netns_cookie(uint64_t *cookie)
{
	socklen_t bytes = sizeof(*cookie);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int err = fd < 0 || getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, cookie, &bytes) ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return err;
}

/* A descriptor of the root of cgroup v2, or -errno. */
static int cgroup_root(void)
{
	int mount = -1, context = (int)syscall(SYS_fsopen, "cgroup2", 1 /* FSOPEN_CLOEXEC */);

	if (context < 0)
		return -errno;
	if (!syscall(SYS_fsconfig, context, FSCONFIG_CREATE, NULL, NULL, 0))
		mount = (int)syscall(SYS_fsmount, context, 1 /* FSMOUNT_CLOEXEC */, 0);
	if (mount < 0)
		mount = -errno;
	close(context);
	return mount;
}

int window_bound(struct window *window)
{
	uint64_t cookie = 0;
	int err = own_netns_cookie(&cookie);

	if (err) {
		complain("--window: asking for the namespace's cookie: %s: needs Linux 5.14 or later",
			 strerror(-err));
		return err;
	}
	window->cgroup_fd = -1;
	window->bpf = window_bpf__open();
	err = window->bpf ? 0 : -errno;
	if (!err) {
		window->bpf->rodata->netns_cookie = cookie;
		err = window_bpf__load(window->bpf);
	}
	if (!err) {
		memcpy(window->bpf->bss->most_segments, window->segments, sizeof(window->segments));
		err = window->cgroup_fd = cgroup_root();
		if (err >= 0) {
			window->link = bpf_program__attach_cgroup(window->bpf->progs.bound_window,
								  window->cgroup_fd);
			err = window->link ? 0 : -errno;
		}
	}
	if (err)
		complain("--window: bounding windows by BPF: %s: needs root, CONFIG_CGROUP_BPF and "
			 "version 2 of control groups",
			 strerror(-err));
	return err;
}

int window_failures(const struct window *window)
{
	return window->bpf ? (int)window->bpf->bss->failures : 0;
}

void window_release(struct window *window)
{
	bpf_link__destroy(window->link);
	if (window->bpf && window->cgroup_fd >= 0)
		close(window->cgroup_fd);
	window_bpf__destroy(window->bpf);
}
