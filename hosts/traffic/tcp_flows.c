// SPDX-License-Identifier: MIT
// Runs any number of long TCP flows in one thread: connects all, lets all send for a given time, then aborts all. Every
// wait is for a socket or for a timer on CLOCK_MONOTONIC.
#include "tcp_flows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/clock_ns.h"
#include "../../lib/options.h"
#include "../../lib/report.h"
#include "files.h"

enum {
	OTHER_FILES = 16,
	MARGIN_NS = 1000000, /* from the last handshake to the start, if the planned one is past or missing */
	MOST_ERRORS = 5,     /* printed one by one */
};

#define MOST_NS ((uint64_t)1 << 62)

const char *const program_name = "tcp_flows";

static const char USAGE[] =
	"usage: tcp_flows --server ADDRESS --duration-ns N --report FILE [option...] <FLOWS\n"
	"Sends on long TCP flows for a given time. FLOWS has a line per flow:\n"
	"CONGESTION_CONTROL CLIENT_PORT SERVER_PORT OFFSET_NS (delay of the flow after the start).\n"
	"  --server ADDRESS          IPv4 or IPv6 address of the host that runs traffic_sink\n"
	"  --duration-ns N           from the last flow's start to the end\n"
	"  --report FILE             results as JSON\n"
	"  --start-mono-ns N         start on CLOCK_MONOTONIC; 0: when all are connected (default). If "
	"connecting\n"
	"                            takes longer, the start is later; the report has the actual start\n"
	"  --connect-interval-ns N   between two SYNs (default 100000): all at once would overflow the "
	"queue\n"
	"  --setup-ns N              limit for all handshakes, from the first SYN (default 30000000000)\n"
	"  --drain-ns N              from the end, when sending stops, to the RSTs (default 0)\n"
	"  --mss N                   segment size\n"
	"  --ecn                     a connection without ECN is an error\n";

static int parse_options(struct run *run, int argc, char **argv)
{
	const struct option_row rows[] = {
		OPTION_NEEDED_READ("server", "ADDRESS", read_server, &run->path.server),
		OPTION_NEEDED_NUMBER("duration-ns", &run->duration_ns, 1, MOST_NS),
		OPTION_NEEDED_TEXT("report", "FILE", &run->report),
		OPTION_NUMBER("start-mono-ns", &run->planned_start_mono_ns, 0, MOST_NS),
		OPTION_NUMBER("connect-interval-ns", &run->connect_interval_ns, 1, MOST_NS),
		OPTION_NUMBER("setup-ns", &run->setup_ns, 1, MOST_NS),
		OPTION_NUMBER("drain-ns", &run->drain_ns, 0, MOST_NS),
		OPTION_NUMBER("mss", &run->path.mss_bytes, 88, 9216),
		OPTION_FLAG("ecn", &run->path.ecn),
		OPTIONS_END,
	};

	*run = (struct run){.connect_interval_ns = 100000, .setup_ns = 30000000000};
	return options_read(rows, USAGE, argc, argv);
}

static int wait_for(struct run *run, int operation, struct flow *flow, uint32_t wanted)
{
	int err = events_socket(&run->events, operation, flow->fd, wanted, flow);

	if (err)
		complain("watching the socket of port %d: %s", flow->client_port, strerror(-err));
	return err;
}

/* Handles a ready socket. 0, or -errno if the flow has failed; the flow's error says why. */
static int serve(struct run *run, struct flow *flow, uint32_t ready)
{
	int err;

	if (flow->state == FLOW_CONNECTING) {
		err = flow_connected(flow, &run->path);
		if (err)
			return err;
		flow->connected_mono_ns = mono_now_ns();
		run->connected++;
		return wait_for(run, EPOLL_CTL_MOD, flow, EPOLLRDHUP);
	}
	if (ready & (EPOLLERR | EPOLLHUP | EPOLLRDHUP))
		return flow_ended(flow, flow->state == FLOW_SENDING ? "sending" : "waiting for the start");
	return flow_write(flow);
}

/* Waits once, for sockets or until mono_ns. Returns 1 at mono_ns, 0 after serving sockets, -EINTR after a signal, -EIO
 * if a flow has failed.
 */
static int step(struct run *run, uint64_t mono_ns)
{
	enum events_wakeup wakeup;
	int sockets, err, failed = 0;

	events_arm(&run->events, mono_ns);
	err = events_wait(&run->events, true, &sockets, &wakeup);
	if (err) {
		complain("waiting for sockets: %s", strerror(-err));
		return -EIO;
	}
	if (wakeup == EVENTS_SIGNAL) {
		run->stopped = run->events.signal_name;
		return -EINTR;
	}
	if (wakeup == EVENTS_TIMER)
		return 1;
	for (int index = 0; index < sockets; index++) {
		const struct epoll_event *event = run->events.batch + index;

		if (serve(run, event->data.ptr, event->events))
			failed = -EIO;
	}
	return failed;
}

/* Serves sockets until mono_ns. 0, -EINTR or -EIO. */
static int serve_until(struct run *run, uint64_t mono_ns)
{
	int result;

	do
		result = step(run, mono_ns);
	while (!result);
	return result < 0 ? result : 0;
}

/* Sends one SYN after the other, then waits for the last handshake. */
static int connect_all(struct run *run)
{
	uint64_t deadline_ns = mono_now_ns() + run->setup_ns;
	int result = 0;

	for (uint32_t index = 0; index < run->count; index++) {
		struct flow *flow = run->flows + index;

		if (index) {
			result = serve_until(run, mono_now_ns() + run->connect_interval_ns);
			if (result)
				return result;
		}
		if (flow_connect(flow, &run->path) ||
		    wait_for(run, EPOLL_CTL_ADD, flow, EPOLLOUT | EPOLLRDHUP))
			return -EIO;
	}
	while (!result && run->connected < run->count)
		result = step(run, deadline_ns);
	if (result <= 0)
		return result;
	for (uint32_t index = 0; index < run->count; index++)
		if (run->flows[index].state == FLOW_CONNECTING)
			snprintf(run->flows[index].error, sizeof(run->flows[index].error),
				 "connecting: no answer within %.3f s: is the path up?",
				 (double)run->setup_ns / 1e9);
	return -EIO;
}

/* Sets the start: as planned, or MARGIN_NS from now if that is later. */
static void set_times(struct run *run)
{
	uint64_t soonest_ns = mono_now_ns() + MARGIN_NS;

	run->start_mono_ns =
		run->planned_start_mono_ns > soonest_ns ? run->planned_start_mono_ns : soonest_ns;
	run->end_mono_ns = run->start_mono_ns + run->flows[run->count - 1].offset_ns + run->duration_ns;
}

static int start_sending(struct run *run, struct flow *flow)
{
	if (pump_is_open(&run->pump))
		return flow_pump(flow, &run->pump);
	return flow_write(flow) || wait_for(run, EPOLL_CTL_MOD, flow, EPOLLOUT | EPOLLRDHUP);
}

/* Starts all flows that have the offset of flow number first. Returns the number of the next flow, or -EIO. */
static int begin(struct run *run, uint32_t first)
{
	uint64_t now_ns;
	uint32_t next;

	for (next = first; next < run->count && run->flows[next].offset_ns == run->flows[first].offset_ns;
	     next++) {
		struct flow *flow = run->flows + next;

		flow->state = FLOW_SENDING;
		if (start_sending(run, flow))
			return -EIO;
	}
	now_ns = mono_now_ns(); /* read afterwards, because in virtual time reading the clock takes 1 ns */
	for (uint32_t index = first; index < next; index++)
		run->flows[index].started_mono_ns = now_ns;
	return (int)next;
}

static int send_until_end(struct run *run)
{
	uint32_t next = 0;
	int result = 0;

	while (next < run->count) {
		result = serve_until(run, run->start_mono_ns + run->flows[next].offset_ns);
		if (result)
			return result;
		result = begin(run, next);
		if (result < 0)
			return result;
		next = (uint32_t)result;
	}
	return serve_until(run, run->end_mono_ns);
}

/* Stops all flows and lets the segments in flight arrive and be acknowledged. The sockets leave the epoll set: errors
 * no longer matter, and a dead connection would be ready all the time.
 */
static int drain(struct run *run)
{
	for (uint32_t index = 0; index < run->count; index++)
		flow_stop(run->flows + index, &run->pump);
	run->ended_mono_ns = mono_now_ns();
	for (uint32_t index = 0; index < run->count; index++)
		wait_for(run, EPOLL_CTL_DEL, run->flows + index, 0);
	for (uint32_t index = 0; index < run->count; index++)
		flow_account(run->flows + index);
	return run->drain_ns ? serve_until(run, run->end_mono_ns + run->drain_ns) : 0;
}

static int carry(struct run *run)
{
	int result = connect_all(run);

	if (!result) {
		set_times(run);
		result = send_until_end(run);
	}
	if (!result)
		return drain(run);
	run->ended_mono_ns = mono_now_ns();
	for (uint32_t index = 0; index < run->count; index++)
		flow_account(run->flows + index);
	return result;
}

/* Reports the errors of the run. Returns whether there are any. */
static bool report_errors(const struct run *run)
{
	uint32_t failed = 0;

	if (run->stopped)
		complain("ended by %s before its time", run->stopped);
	for (uint32_t index = 0; index < run->count; index++) {
		const struct flow *flow = run->flows + index;

		if (*flow->error && failed++ < MOST_ERRORS)
			complain("flow from port %d to %s port %d: %s", flow->client_port,
				 run->path.server.text, flow->server_port, flow->error);
	}
	if (failed > MOST_ERRORS)
		complain("%" PRIu32 " more flows failed: see the report", failed - MOST_ERRORS);
	return run->stopped || failed;
}

int main(int argc, char **argv)
{
	struct run run;
	bool trouble;
	int err;

	err = parse_options(&run, argc, argv);
	if (err)
		return err > 0 ? 0 : EXIT_REFUSED;
	if (flow_list_read(stdin, &run.flows, &run.count))
		return EXIT_REFUSED;
	if (allow_files(run.count + OTHER_FILES, run.count + OTHER_FILES) || pump_open(&run.pump) ||
	    events_open(&run.events)) {
		free(run.flows);
		return EXIT_REFUSED;
	}

	run.with_pump = pump_is_open(&run.pump);
	err = carry(&run);
	pump_close(&run.pump);
	for (uint32_t index = 0; index < run.count; index++)
		flow_close(run.flows + index);
	trouble = report_errors(&run);
	if (tcp_flows_report(&run) || err)
		trouble = true;

	events_close(&run.events);
	free(run.flows);
	return trouble ? EXIT_INCOMPLETE : 0;
}
