/* SPDX-License-Identifier: MIT
 * What this kernel must have for the BPF programs, checked before anything is loaded, so that the reason is one
 * clear line and not a verifier log; and what both sources ask the kernel about.
 */
#ifndef TRACE_KERNEL_H
#define TRACE_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#define KERNEL_BTF "/sys/kernel/btf/vmlinux"

struct kernel {
	uint32_t possible_cpus;
	bool retransmit_tells_error; /* tracepoint tcp_retransmit_skb has a third argument (Linux 6.16) */
};

/* 0, or -errno after one line that names what is missing. With verbose, libbpf has its say on stderr from here on. */
int kernel_check(struct kernel *kernel, const char *btf_path, bool verbose);

/* What the kernel's records call the network namespace at path. 0 or -errno after one line. */
int kernel_netns_inode(const char *path, uint32_t *inode);

/* Calls each(cpu, context) for every CPU present; stops at the first error and returns it. */
int kernel_each_present_cpu(int (*each)(uint32_t cpu, void *context), void *context);

#endif
