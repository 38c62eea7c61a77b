/* SPDX-License-Identifier: MIT
 * A run of tcp_flows: what was asked, and what came of it.
 */
#ifndef TRAFFIC_TCP_FLOWS_H
#define TRAFFIC_TCP_FLOWS_H

#include "events.h"
#include "flow_socket.h"

struct run {
	struct path path;
	uint64_t planned_start_mono_ns; /* 0: as soon as all are connected */
	uint64_t duration_ns;
	uint64_t connect_interval_ns; /* between two SYNs */
	uint64_t setup_ns;	      /* for all connections, from the first SYN */
	uint64_t drain_ns;	      /* from the end to the RSTs */
	const char *report;

	struct events events;
	struct flow *flows; /* by offset */
	uint32_t count;
	uint32_t connected;
	uint64_t start_mono_ns; /* offsets count from here; 0: did not come to it */
	uint64_t end_mono_ns;	/* planned: start, last offset and duration */
	uint64_t ended_mono_ns; /* nothing was written any more by then */
	const char *stopped;	/* by which signal; NULL */
};

/* The report as JSON, whole or not at all. 0, or -errno after one line. */
int tcp_flows_report(const struct run *run);

#endif
