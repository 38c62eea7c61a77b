/* SPDX-License-Identifier: MIT
 * What the epoll programs here wait for besides sockets: one moment on CLOCK_MONOTONIC, and the signals that end
 * them. No timeout of epoll is used: it counts in ms, a timer in ns.
 */
#ifndef TRAFFIC_EVENTS_H
#define TRAFFIC_EVENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

enum {
	/* Sockets served between two looks at timer and signals: bounds how late a moment is seen on a busy
	 * machine.
	 */
	EVENTS_BATCH = 16,
};

struct events {
	int epoll;
	int timer;
	int signals;
	uint64_t armed_ns;	 /* 0: not armed */
	const char *signal_name; /* of the first that came; NULL */
	struct epoll_event batch[EVENTS_BATCH];
};

/* What came besides the sockets in batch. */
enum events_found {
	EVENTS_SOCKETS = 0, /* nothing */
	EVENTS_MOMENT = 1,  /* the armed moment has come; sockets of this batch are still ready in the next */
	EVENTS_SIGNAL = 2,
};

/* SIGTERM and SIGINT are blocked and read from then on. 0, or -errno after one line. */
int events_open(struct events *events);
void events_close(struct events *events);

/* The moment to be woken at, CLOCK_MONOTONIC; one that is past comes at once, 0 is none. */
void events_arm(struct events *events, uint64_t mono_ns);

/* Adds, changes or takes away what is waited for of a socket; data comes back in the batch. 0 or -errno. */
int events_socket(struct events *events, int operation, int fd, uint32_t wanted, void *data);

/* Waits; without `block`, only looks. *sockets is how many of batch are sockets (timer and signals are taken out);
 * found says what else came. 0 or -errno.
 */
int events_wait(struct events *events, bool block, int *sockets, enum events_found *found);

#endif
