// SPDX-License-Identifier: MIT
// A finite flow wakes the program twice: at the SYN-ACK, and at the ACK of its FIN. Without the traffic device (pump.h)
// a flow that is larger than its send buffer wakes the program more often. Events are edge-triggered: a socket that
// has sent its FIN is writable all the time, but only its change to FIN-WAIT-2 is an event.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/clock_ns.h"
#include "../../lib/report.h"
#include "../../wire/flow_record.h"
#include "tcp_flows.h"

#define FINITE_EVENTS (EPOLLOUT | EPOLLRDHUP | EPOLLET)

static uint32_t line_of(const struct run *run, const struct flow *flow)
{
	return (uint32_t)(flow - run->list.flows);
}

/* Closes a flow, records it, and lets its user think. */
static void finish(struct run *run, struct flow *flow, uint8_t end)
{
	struct tcp_info info = {0};
	uint16_t timeouts;

	flow->ended_mono_ns = mono_now_ns();
	if (end == FLOW_END_RESET)
		flow_stop(flow, &run->pump);
	flow_account(flow, &info, &timeouts);
	flow_records_add(&run->records, &run->path, flow, line_of(run, flow), end, &info, timeouts);
	if (end != FLOW_END_FINISHED && !run->first_failed)
		run->first_failed = flow;
	flow_close(flow);
	run->open--;
	run->finished += end == FLOW_END_FINISHED;
	run->refused += end == FLOW_END_REFUSED;
	run->reset += end == FLOW_END_RESET;
	if (flow->next)
		tcp_flows_plan(run, flow->next, flow->ended_mono_ns + flow->next->offset_ns);
}

static int write_on(struct run *run, struct flow *flow)
{
	return pump_is_open(&run->pump) ? flow_pump(flow, &run->pump) : flow_write_all(flow);
}

int finite_flow_begin(struct run *run, struct flow *flow, uint64_t due_mono_ns)
{
	flow->syn_mono_ns = mono_now_ns();
	if (flow->syn_mono_ns >= run->end_mono_ns)
		return 1;
	/* The clock is coarser than the timer: it may still read a time before the due time. */
	send_lateness_count(&run->lateness,
			    flow->syn_mono_ns > due_mono_ns ? flow->syn_mono_ns - due_mono_ns : 0);
	if (flow_connect(flow, &run->path) || tcp_flows_watch(run, EPOLL_CTL_ADD, flow, FINITE_EVENTS))
		return -EIO;
	if (++run->open > run->most_open)
		run->most_open = run->open;
	return 0;
}

static int on_connected(struct run *run, struct flow *flow, uint32_t ready)
{
	if (!(ready & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
		return 0;
	if (flow_connected(flow, &run->path)) {
		finish(run, flow, FLOW_END_REFUSED);
		return 0;
	}
	flow->connected_mono_ns = mono_now_ns();
	flow->state = FLOW_SENDING;
	if (write_on(run, flow)) {
		finish(run, flow, FLOW_END_RESET);
		return 0;
	}
	flow->started_mono_ns = mono_now_ns();
	return 0;
}

int finite_flow_serve(struct run *run, struct flow *flow, uint32_t ready)
{
	int acked;

	switch (flow->state) {
	case FLOW_CONNECTING:
		return on_connected(run, flow, ready);
	case FLOW_SENDING:
		if (ready & (EPOLLERR | EPOLLHUP | EPOLLRDHUP))
			flow_ended(flow, "sending");
		if (flow->error || flow_write_all(flow))
			finish(run, flow, FLOW_END_RESET);
		return 0;
	case FLOW_CLOSING:
		acked = flow_is_acked(flow);
		if (acked)
			finish(run, flow, acked > 0 ? FLOW_END_FINISHED : FLOW_END_RESET);
		return 0;
	default:
		return 0; /* an earlier event of the same epoll batch has finished the flow */
	}
}
