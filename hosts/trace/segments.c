// SPDX-License-Identifier: MIT
// An open file of counters keeps showing the namespace in which it was opened.
#include "segments.h"

#include <errno.h>
#include <string.h>

#include "../../lib/report.h"
#include "../../lib/snmp.h"
#include "netns.h"

static int open_counters(void *context)
{
	struct segment_counter *counter = context;

	/* thread-self: setns moves this thread only, and /proc/net shows the main thread's namespace */
	counter->snmp = fopen("/proc/thread-self/net/snmp", "re");
	counter->netstat = fopen("/proc/thread-self/net/netstat", "re");
	return counter->snmp && counter->netstat ? 0 : -errno;
}

static int read_counters(const struct segment_counter *counter, struct segments *now)
{
	uint64_t coalesced = 0;
	int err = snmp_counter(counter->snmp, "Tcp", "InSegs", &now->received);

	if (!err)
		err = snmp_counter(counter->snmp, "Tcp", "RetransSegs", &now->resent);
	snmp_counter(counter->netstat, "TcpExt", "TCPBacklogCoalesce", &coalesced); /* since Linux 4.20 */
	now->received -= coalesced;
	return err;
}

int segments_open(struct segment_counter *counter, const char *netns_path)
{
	int err = netns_call(netns_path, open_counters, counter);

	if (!err)
		err = read_counters(counter, &counter->before);
	if (err)
		complain("counting segments in network namespace %s: /proc/net: %s: run as root, with "
			 "/proc mounted",
			 netns_path, strerror(-err));
	return err;
}

struct segments segments_since(const struct segment_counter *counter)
{
	struct segments now = counter->before;

	read_counters(counter, &now); /* cannot fail: segments_open has read the same counters */
	return (struct segments){
		.received = now.received - counter->before.received,
		.resent = now.resent - counter->before.resent,
	};
}

void segments_close(struct segment_counter *counter)
{
	if (counter->snmp)
		fclose(counter->snmp);
	if (counter->netstat)
		fclose(counter->netstat);
	*counter = (struct segment_counter){0};
}
