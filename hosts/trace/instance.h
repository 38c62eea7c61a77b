/* SPDX-License-Identifier: MIT
 * A private instance of tracefs: rings, clock, events and filters of our own, which disturb no other tracing.
 *
 * The kernel keeps an instance when its maker dies, with its memory and its events enabled. So a child process does
 * nothing but wait for the end of the maker, however it ends, and remove the instance then. Should that child be
 * killed too, the next start removes the instance: the kernel refuses to remove one of which a file is open, which
 * tells stale ones from those in use whoever made them and in whatever PID namespace. A lock covers the moment
 * between making an instance and opening the first of its files.
 */
#ifndef TRACE_INSTANCE_H
#define TRACE_INSTANCE_H

#include <sys/types.h>

struct instance {
	char name[64];
	int instances; /* descriptors: the directory of all instances, */
	int dir;       /* that of this one, */
	int lifeline;  /* and a pipe that ends with this process */
	pid_t remover;
};

#define INSTANCE_NONE ((struct instance){.instances = -1, .dir = -1, .lifeline = -1})

/* Removes stale ones and makes a new one, which is safe only when a file of it is open: then call instance_settled.
 * 0 or -errno after one line; instance_remove in any case.
 */
int instance_make(struct instance *instance, int tracefs);
void instance_settled(const struct instance *instance);

/* Every file of it must be closed. 0, or -errno after one line when it stays. */
int instance_remove(struct instance *instance);

#endif
