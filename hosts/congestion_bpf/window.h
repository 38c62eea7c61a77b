/* SPDX-License-Identifier: MIT
 * Bounds the congestion window of every connection that the caller's network namespace opens.
 */
#ifndef WINDOW_H
#define WINDOW_H

#include <stdint.h>

struct bpf_link;
struct window_bpf;

struct window {
	struct window_bpf *bpf;
	struct bpf_link *link;
	int cgroup_fd;
};

/* Returns 0, or -errno after one line. */
int window_bound(struct window *window, uint32_t segments);
/* The number of connections whose window the kernel did not let bound. */
int window_failures(const struct window *window);
void window_release(struct window *window);

#endif
