/* SPDX-License-Identifier: MIT
 * A congestion control in a BPF object: a variable of type struct tcp_congestion_ops in the section .struct_ops.
 */
#ifndef ALGORITHM_H
#define ALGORITHM_H

#include <stdint.h>

enum { ALGORITHM_NAME_BYTES = 16 }; /* TCP_CA_NAME_MAX of include/net/tcp.h */

struct bpf_link;
struct bpf_object;

struct algorithm {
	char name[ALGORITHM_NAME_BYTES];
	const char *path;
	struct bpf_object *object;
	struct bpf_link *value; /* the functions in the kernel; since libbpf 1.2 also their registration */
	int link_fd;		/* libbpf before 1.2: the registration; 0: none */
};

/* Loads the object's programs under algorithm->name; the kernel checks them. libbpf 1.2 and later: also registers them.
 * Returns 0, or -errno after one line.
 */
int algorithm_load(struct algorithm *algorithm, uint64_t seed);
/* Registers the loaded programs. Returns 0, or -errno after one line. */
int algorithm_register(struct algorithm *algorithm);
void algorithm_release(struct algorithm *algorithm);

#endif
