// SPDX-License-Identifier: MIT
// The kernel module discards the data, and notifies the sink of the first bytes after an idle interval. The sink asks
// for counts when it is notified, at the end of each interval, and before it closes a connection.
#include <errno.h>
#include <string.h>

#include "../../lib/report.h"
#include "sink.h"

enum { COUNTS = 256 };

int sink_pump_collect(struct sink *sink)
{
	struct pump_count counts[COUNTS];
	int count = 0;

	if (!pump_is_open(&sink->pump))
		return 0;
	do {
		count = pump_counts(&sink->pump, counts, COUNTS);
		for (int index = 0; index < count; index++)
			goodput_count(&sink->goodput, &sink->flows[counts[index].id]->meter,
				      counts[index].bytes, counts[index].reads);
	} while (count == COUNTS);
	if (count >= 0)
		return 0;
	complain("asking %s for counts: %s", PUMP_DEVICE, strerror(-count));
	return count;
}

static int ready(struct sink_handler *handler, struct sink *sink)
{
	(void)handler;
	return sink_pump_collect(sink);
}

static int watch(struct sink *sink, int operation)
{
	int err = events_socket(&sink->events, operation, sink->pump.fd, EPOLLIN | EPOLLONESHOT,
				&sink->pump_handler);

	if (err)
		complain("watching %s: %s", PUMP_DEVICE, strerror(-err));
	return err;
}

int sink_pump_open(struct sink *sink)
{
	int err = pump_open(&sink->pump);

	sink->pump_handler.ready = ready;
	return err || !pump_is_open(&sink->pump) ? err : watch(sink, EPOLL_CTL_ADD);
}

int sink_pump_arm(struct sink *sink)
{
	return pump_is_open(&sink->pump) ? watch(sink, EPOLL_CTL_MOD) : 0;
}
