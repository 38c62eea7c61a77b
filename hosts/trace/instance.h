/* SPDX-License-Identifier: MIT
 * A private instance of tracefs has its own rings, clock, events and filters, so it disturbs no other tracing.
 *
 * When the tracer dies, the kernel keeps the instance, with its memory and its enabled events. So a child process
 * waits for the tracer's end, even by SIGKILL, and removes the instance then. If the child is killed too, the next
 * start removes the stale instance, and so does `tcp_trace --stale remove`, which the runner calls outside of the PID
 * namespace whose end kills both. The kernel refuses to remove an instance that has an open file: this protects
 * instances in use, also those of other PID namespaces. A lock covers the time between making an instance and
 * opening its first file. A tracer holds a lock on the directory of its instance, too.
 */
#ifndef TRACE_INSTANCE_H
#define TRACE_INSTANCE_H

#include <stdbool.h>
#include <sys/types.h>

struct instance {
	char name[64];
	int instances; /* descriptor of the directory of all instances */
	int dir;       /* descriptor of this instance's directory */
	int lifeline;  /* pipe that closes when this process ends */
	pid_t remover;
};

#define INSTANCE_NONE ((struct instance){.instances = -1, .dir = -1, .lifeline = -1})

/* Takes the lock, removes stale instances and makes a new one. Open a file of the new instance, then call
 * instance_settled, which releases the lock. Returns 0, or -errno after one message. Call instance_remove in either
 * case.
 */
int instance_make(struct instance *instance, int tracefs);
void instance_settled(const struct instance *instance);

/* Lists on stdout, one name a line, the instances that killed tracers left, and removes them if `remove`. Returns 0, or
 * -errno after one message.
 */
int instances_stale(int tracefs, bool remove);

/* Close every file of the instance first. Returns 0, or -errno after one message if the instance stays. */
int instance_remove(struct instance *instance);

#endif
