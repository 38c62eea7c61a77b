/* SPDX-License-Identifier: MIT
 * The epoll set of a program: sockets, one timer on CLOCK_MONOTONIC, and the signals that end the program. The timer
 * is a timerfd, because epoll's own timeout counts in ms.
 */
#ifndef TRAFFIC_EVENTS_H
#define TRAFFIC_EVENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

enum {
	EVENTS_BATCH = 16, /* sockets between two checks of timer and signals: bounds the timer's lateness */
};

struct events {
	int epoll;
	int timer;
	int signals;
	uint64_t armed_ns;	 /* 0: not armed */
	const char *signal_name; /* of the first signal; NULL: none */
	struct epoll_event batch[EVENTS_BATCH];
};

/* Why a wait has ended. After EVENTS_TIMER, level-triggered sockets that were left unserved are in the next batch. */
enum events_wakeup {
	EVENTS_SOCKETS = 0, /* only sockets, or none */
	EVENTS_TIMER = 1,   /* the timer has expired */
	EVENTS_SIGNAL = 2,
};

/* Blocks SIGTERM and SIGINT; events_wait reports them from then on. 0, or -errno after one message. */
int events_open(struct events *events);
void events_close(struct events *events);

/* Arms the timer for a time of CLOCK_MONOTONIC. A past time expires at once; 0 disarms. */
void events_arm(struct events *events, uint64_t mono_ns);

/* epoll_ctl for a socket: `wanted` are the events to wait for, `data` comes back in the batch. 0 or -errno. */
int events_socket(struct events *events, int operation, int fd, uint32_t wanted, void *data);

/* Waits; without `block`, polls. *sockets is the number of sockets in batch (timer and signals are removed from it).
 * 0 or -errno.
 */
int events_wait(struct events *events, bool block, int *sockets, enum events_wakeup *wakeup);

#endif
