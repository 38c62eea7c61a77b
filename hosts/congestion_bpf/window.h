/* SPDX-License-Identifier: MIT
 * Bounds the congestion windows of connections that the caller's network namespace opens, by their server ports.
 */
#ifndef WINDOW_H
#define WINDOW_H

enum { WINDOW_PORTS = 1 << 16 };

#ifndef __bpf__
#include <stdint.h>

struct bpf_link;
struct window_bpf;

/* `segments` has the bound by server port; 0: no bound. */
struct window {
	uint32_t segments[WINDOW_PORTS];
	struct window_bpf *bpf;
	struct bpf_link *link;
	int cgroup_fd;
};

/* Returns 0, or -errno after one line. */
int window_bound(struct window *window);
/* The number of connections whose window the kernel refused to bound. */
int window_failures(const struct window *window);
void window_release(struct window *window);

#endif /* __bpf__ */
#endif
