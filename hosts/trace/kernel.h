/* SPDX-License-Identifier: MIT
 * What this kernel must have for the tracer, checked before anything is loaded, so that the reason is one
 * clear line and not a verifier log.
 */
#ifndef TRACE_KERNEL_H
#define TRACE_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

struct kernel {
	uint32_t possible_cpus;
	uint32_t netns_inode;
	bool retransmit_tells_error; /* tracepoint tcp_retransmit_skb has a third argument (Linux 6.16) */
};

/* 0, or -errno after one line that names what is missing. With verbose, libbpf has its say on stderr from here on. */
int kernel_check(struct kernel *kernel, const char *btf_path, const char *netns_path, bool verbose);

/* Calls each(cpu, context) for every CPU present; stops at the first error and returns it. */
int kernel_each_present_cpu(int (*each)(uint32_t cpu, void *context), void *context);

#endif
