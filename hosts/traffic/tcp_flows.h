/* SPDX-License-Identifier: MIT
 * A run of tcp_flows: its options, its flows and its results.
 */
#ifndef TRAFFIC_TCP_FLOWS_H
#define TRAFFIC_TCP_FLOWS_H

#include "agenda.h"
#include "events.h"
#include "flow_records.h"
#include "flow_socket.h"
#include "pump.h"
#include "send_lateness.h"

struct run {
	struct path path;
	uint64_t planned_start_mono_ns; /* 0: as soon as all long flows are connected */
	uint64_t duration_ns;
	uint64_t connect_interval_ns; /* between two SYNs of long flows */
	uint64_t setup_ns;	      /* limit for all handshakes of long flows, from the first SYN */
	uint64_t drain_ns;	      /* from the end, or the stop of a long flow, to the RSTs */
	const char *report;
	const char *records_path; /* NULL: no records */

	struct events events;
	struct pump pump;
	bool with_pump;
	struct flow_list list;
	struct agenda agenda; /* flows that have a start time and have not begun */
	struct flow_records records;
	uint32_t connected; /* long flows that connect before the start */
	uint32_t open;	    /* finite flows that have a socket */
	uint32_t most_open;
	uint32_t finished; /* finite flows, by their ends */
	uint32_t refused;
	uint32_t reset;
	const struct flow *first_failed; /* finite flow */
	struct send_lateness lateness;	 /* of SYNs of finite flows */
	uint64_t start_mono_ns;		 /* offsets count from here; 0: the run ended before the start */
	uint64_t end_mono_ns;		 /* planned: start + duration */
	uint64_t ended_mono_ns;		 /* read after the last write */
	const char *stopped;		 /* name of the signal that ended the run; NULL: none */
};

/* Puts the flow on the agenda, unless it would begin at its stop or later. */
void tcp_flows_plan(struct run *run, struct flow *flow, uint64_t due_mono_ns);

/* Carries the run out, from the first SYN to the end of the drain. 0, -EINTR or -EIO; a flow's error is in the flow. */
int tcp_flows_carry(struct run *run);

/* Finite flows (finite_flows.c). Connects a flow that was due at due_mono_ns. 0; 1 if the traffic is over by now; or
 * -EIO if this host cannot open another connection.
 */
int finite_flow_begin(struct run *run, struct flow *flow, uint64_t due_mono_ns);
/* Serves a flow whose socket is ready. Always 0: a flow that fails is recorded, and the run goes on. */
int finite_flow_serve(struct run *run, struct flow *flow, uint32_t ready);

/* epoll_ctl (`operation`) for the flow's socket and the events `wanted`. 0, or -errno after one message. */
int tcp_flows_watch(struct run *run, int operation, struct flow *flow, uint32_t wanted);

/* Writes the report as JSON, atomically. 0, or -errno after one message. */
int tcp_flows_report(const struct run *run);

#endif
