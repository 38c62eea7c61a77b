/* SPDX-License-Identifier: MIT
 * Checks what the BPF programs require of this kernel before they are loaded, so that a failure is one clear line and
 * not a verifier log. Also has the kernel queries that both event sources (BPF and tracefs) use.
 */
#ifndef TRACE_KERNEL_H
#define TRACE_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#define KERNEL_BTF "/sys/kernel/btf/vmlinux"

struct kernel {
	uint32_t possible_cpus;
	bool retransmit_has_error; /* tracepoint tcp_retransmit_skb has a third argument (Linux 6.16) */
};

/* 0, or -errno after one message that names the missing feature. With verbose, libbpf prints to stderr from now on. */
int kernel_check(struct kernel *kernel, const char *btf_path, bool verbose);

/* Inode number of the network namespace at path, as in records. 0 or -errno after one message. */
int kernel_netns_inode(const char *path, uint32_t *inode);

/* Calls each(cpu, context) for every CPU present; stops at the first error and returns it. */
int kernel_each_present_cpu(int (*each)(uint32_t cpu, void *context), void *context);

#endif
