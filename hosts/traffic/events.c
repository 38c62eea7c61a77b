// SPDX-License-Identifier: MIT
// A timerfd and a signalfd in one epoll set with the sockets.
#include "events.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "../../lib/report.h"

int events_socket(struct events *events, int operation, int fd, uint32_t wanted, void *data)
{
	struct epoll_event event = {.events = wanted, .data.ptr = data};

	return epoll_ctl(events->epoll, operation, fd, &event) ? -errno : 0;
}

int events_open(struct events *events)
{
	sigset_t ending;
	int err = 0;

	sigemptyset(&ending);
	sigaddset(&ending, SIGTERM);
	sigaddset(&ending, SIGINT);
	sigprocmask(SIG_BLOCK, &ending, NULL);
	prctl(PR_SET_TIMERSLACK, 1);
	*events = (struct events){
		.epoll = epoll_create1(EPOLL_CLOEXEC),
		.timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
		.signals = signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK),
	};
	if (events->epoll < 0 || events->timer < 0 || events->signals < 0)
		err = -errno;
	if (!err)
		err = events_socket(events, EPOLL_CTL_ADD, events->timer, EPOLLIN, &events->timer);
	if (!err)
		err = events_socket(events, EPOLL_CTL_ADD, events->signals, EPOLLIN, &events->signals);
	if (err)
		complain("opening epoll, timer and signals: %s; the kernel must have all three",
			 strerror(-err));
	return err;
}

void events_close(struct events *events)
{
	close(events->epoll);
	close(events->timer);
	close(events->signals);
}

void events_arm(struct events *events, uint64_t mono_ns)
{
	const struct itimerspec when = {.it_value = {.tv_sec = (time_t)(mono_ns / 1000000000),
						     .tv_nsec = (long)(mono_ns % 1000000000)}};

	if (mono_ns == events->armed_ns)
		return;
	timerfd_settime(events->timer, TFD_TIMER_ABSTIME, &when, NULL);
	events->armed_ns = mono_ns;
}

static void read_signal(struct events *events)
{
	struct signalfd_siginfo info;

	if (read(events->signals, &info, sizeof(info)) == sizeof(info) && !events->signal_name)
		events->signal_name = info.ssi_signo == SIGINT ? "SIGINT" : "SIGTERM";
}

int events_wait(struct events *events, bool block, int *sockets, enum events_wakeup *wakeup)
{
	int count = epoll_wait(events->epoll, events->batch, EVENTS_BATCH, block ? -1 : 0);
	uint64_t expirations;

	*sockets = 0;
	*wakeup = EVENTS_SOCKETS;
	if (count < 0)
		return errno == EINTR ? 0 : -errno;
	for (int index = 0; index < count; index++) {
		void *data = events->batch[index].data.ptr;

		if (data == &events->signals) {
			*wakeup = EVENTS_SIGNAL;
			read_signal(events);
		} else if (data == &events->timer) {
			/* The read fails if the timer was armed again after it had expired. */
			if (read(events->timer, &expirations, sizeof(expirations)) > 0) {
				events->armed_ns = 0;
				if (*wakeup != EVENTS_SIGNAL)
					*wakeup = EVENTS_TIMER;
			}
		} else {
			events->batch[(*sockets)++] = events->batch[index];
		}
	}
	return 0;
}
