// SPDX-License-Identifier: MIT
// Carries out a run: connects all long flows, begins each flow at its time, serves sockets, and ends everything. Every
// wait is for a socket or for a timer on CLOCK_MONOTONIC.
#include <errno.h>
#include <string.h>

#include "../../lib/clock_ns.h"
#include "../../lib/report.h"
#include "../../wire/flow_record.h"
#include "tcp_flows.h"

enum {
	MARGIN_NS = 1000000, /* least time from the last handshake to the start */
};

int tcp_flows_watch(struct run *run, int operation, struct flow *flow, uint32_t wanted)
{
	int err = events_socket(&run->events, operation, flow->fd, wanted, flow);

	if (err)
		complain("watching the socket of port %d: %s", flow->client_port, strerror(-err));
	return err;
}

void tcp_flows_plan(struct run *run, struct flow *flow, uint64_t due_mono_ns)
{
	if (!flow->stop_ns || due_mono_ns < run->start_mono_ns + flow->stop_ns)
		agenda_add(&run->agenda, flow, due_mono_ns);
}

static int start_sending(struct run *run, struct flow *flow)
{
	flow->state = FLOW_SENDING;
	if (pump_is_open(&run->pump))
		return flow_pump(flow, &run->pump);
	return flow_write(flow) || tcp_flows_watch(run, EPOLL_CTL_MOD, flow, EPOLLOUT | EPOLLRDHUP);
}

/* Handles a ready socket. 0, or -errno if the run cannot go on; the flow's error or a message says why. */
static int serve(struct run *run, struct flow *flow, uint32_t ready)
{
	int err;

	if (flow_is_finite(flow))
		return finite_flow_serve(run, flow, ready);
	if (flow->state == FLOW_CONNECTING) {
		err = flow_connected(flow, &run->path);
		if (err)
			return err;
		flow->connected_mono_ns = mono_now_ns();
		run->connected += !flow->late;
		err = tcp_flows_watch(run, EPOLL_CTL_MOD, flow, EPOLLRDHUP);
		if (err || !flow->late)
			return err;
		err = start_sending(run, flow);
		flow->started_mono_ns = mono_now_ns();
		return err;
	}
	if (ready & (EPOLLERR | EPOLLHUP | EPOLLRDHUP))
		return flow_ended(flow, flow->state == FLOW_SENDING ? "sending" : "waiting for the start");
	return flow_write(flow);
}

/* Waits once, for sockets or until mono_ns. Returns 1 at mono_ns, 0 after serving sockets, -EINTR after a signal, -EIO
 * if a long flow or the wait has failed.
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
	for (int index = 0; index < sockets; index++) {
		const struct epoll_event *event = run->events.batch + index;
		struct flow *flow = event->data.ptr;

		/* Skips long flows if the timer expired: their events are level-triggered, so they are in the next
		 * batch too.
		 */
		if ((wakeup != EVENTS_TIMER || flow_is_finite(flow)) && serve(run, flow, event->events))
			failed = -EIO;
	}
	return failed ? failed : wakeup == EVENTS_TIMER;
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
static int connect_long_flows(struct run *run)
{
	uint64_t deadline_ns = mono_now_ns() + run->setup_ns;
	int result = 0;

	for (uint32_t index = 0; index < run->list.early_count; index++) {
		struct flow *flow = run->list.long_flows[index];

		if (index) {
			result = serve_until(run, mono_now_ns() + run->connect_interval_ns);
			if (result)
				return result;
		}
		if (run->records.open)
			flow->syn_mono_ns = mono_now_ns();
		if (flow_connect(flow, &run->path) ||
		    tcp_flows_watch(run, EPOLL_CTL_ADD, flow, EPOLLOUT | EPOLLRDHUP))
			return -EIO;
	}
	while (!result && run->connected < run->list.early_count)
		result = step(run, deadline_ns);
	if (result <= 0)
		return result;
	for (uint32_t index = 0; index < run->list.early_count; index++)
		flow_unanswered(run->list.long_flows[index], run->setup_ns);
	return -EIO;
}

/* Sets the start: as planned, or MARGIN_NS from now if that is later. Then plans all flows but those that wait for an
 * earlier flow of their user.
 */
static void plan_flows(struct run *run)
{
	const struct flow_list *list = &run->list;
	uint64_t soonest_ns = mono_now_ns() + MARGIN_NS;

	run->start_mono_ns =
		run->planned_start_mono_ns > soonest_ns ? run->planned_start_mono_ns : soonest_ns;
	run->end_mono_ns = run->start_mono_ns + run->duration_ns;
	for (uint32_t index = 0; index < list->count; index++)
		if (!list->flows[index].follows)
			tcp_flows_plan(run, list->flows + index,
				       run->start_mono_ns + list->flows[index].offset_ns);
}

static void account(struct run *run, struct flow *flow)
{
	struct tcp_info info = {0};
	uint16_t timeouts;

	if (flow_account(flow, &info, &timeouts))
		flow_records_add(&run->records, &run->path, flow, (uint32_t)(flow - run->list.flows),
				 flow_is_finite(flow) ? FLOW_END_UNFINISHED : FLOW_END_LONG, &info, timeouts);
}

/* Whether the flow has a socket and has not been stopped. */
static bool is_open(const struct flow *flow)
{
	return flow->fd >= 0 && !flow->ended_mono_ns;
}

static void account_all(struct run *run)
{
	for (uint32_t index = 0; index < run->list.count; index++)
		if (is_open(run->list.flows + index))
			account(run, run->list.flows + index);
}

/* Lets the flow send no new data. A late flow that is not connected by now has failed. */
static void stop_sending(struct run *run, struct flow *flow, uint64_t now_ns)
{
	if (flow->late)
		flow_unanswered(flow, now_ns - flow->syn_mono_ns);
	flow_stop(flow, &run->pump);
}

/* Begins a long flow. 1 if it sends, 0 if it connects first, or -EIO. */
static int begin_long_flow(struct run *run, struct flow *flow)
{
	if (flow->stop_ns)
		agenda_add(&run->agenda, flow, run->start_mono_ns + flow->stop_ns);
	if (!flow->late)
		return start_sending(run, flow) ? -EIO : 1;
	flow->syn_mono_ns = mono_now_ns();
	if (flow_connect(flow, &run->path) ||
	    tcp_flows_watch(run, EPOLL_CTL_ADD, flow, EPOLLOUT | EPOLLRDHUP))
		return -EIO;
	return 0;
}

/* Ends a long flow before the end of the traffic, in two steps as drain() does: it stops sending, and after the drain
 * it gets its RST.
 */
static void end_long_flow(struct run *run, struct flow *flow)
{
	if (flow->state == FLOW_STOPPED) {
		flow_abort(flow);
		return;
	}
	flow->ended_mono_ns = mono_now_ns();
	stop_sending(run, flow, flow->ended_mono_ns);
	tcp_flows_watch(run, EPOLL_CTL_DEL, flow, 0);
	account(run, flow);
	agenda_add(&run->agenda, flow, flow->ended_mono_ns + run->drain_ns);
}

/* Begins all flows that are due at due_mono_ns, and ends long flows. 0; 1 if the traffic is over by now; or -EIO. */
static int begin(struct run *run, uint64_t due_mono_ns)
{
	struct flow *started = NULL, *flow;
	uint64_t now_ns;
	int result;

	while (agenda_first_ns(&run->agenda) == due_mono_ns) {
		flow = agenda_take(&run->agenda);
		if (flow_is_finite(flow)) {
			result = finite_flow_begin(run, flow, due_mono_ns);
			if (result)
				return result;
			continue;
		}
		if (flow->state != FLOW_NONE && flow->state != FLOW_CONNECTED) {
			end_long_flow(run, flow);
			continue;
		}
		result = begin_long_flow(run, flow);
		if (result < 0)
			return result;
		if (!result)
			continue;
		flow->next = started;
		started = flow;
	}
	if (!started)
		return 0;
	now_ns = mono_now_ns(); /* read afterwards, because in virtual time reading the clock takes 1 ns */
	for (flow = started; flow; flow = flow->next)
		flow->started_mono_ns = now_ns;
	return 0;
}

static int send_until_end(struct run *run)
{
	uint64_t due_ns;
	int result;

	while (true) {
		due_ns = agenda_first_ns(&run->agenda);
		if (due_ns >= run->end_mono_ns)
			due_ns = run->end_mono_ns;
		result = step(run, due_ns);
		if (result < 0)
			return result;
		if (result && due_ns == run->end_mono_ns)
			return 0;
		if (result)
			result = begin(run, due_ns);
		if (result)
			return result < 0 ? result : 0; /* this host is so late that the end came first */
	}
}

/* Stops all flows and lets the segments in flight arrive and be acknowledged. The sockets leave the epoll set: errors
 * no longer matter, and a dead connection would be ready all the time.
 */
static int drain(struct run *run)
{
	for (uint32_t index = 0; index < run->list.count; index++)
		if (is_open(run->list.flows + index))
			stop_sending(run, run->list.flows + index, run->end_mono_ns);
	run->ended_mono_ns = mono_now_ns();
	for (uint32_t index = 0; index < run->list.count; index++)
		if (is_open(run->list.flows + index))
			tcp_flows_watch(run, EPOLL_CTL_DEL, run->list.flows + index, 0);
	account_all(run);
	return run->drain_ns ? serve_until(run, run->end_mono_ns + run->drain_ns) : 0;
}

int tcp_flows_carry(struct run *run)
{
	int result = connect_long_flows(run);

	if (!result) {
		plan_flows(run);
		result = send_until_end(run);
	}
	if (!result)
		return drain(run);
	run->ended_mono_ns = mono_now_ns();
	account_all(run);
	return result;
}
