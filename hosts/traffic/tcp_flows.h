/* SPDX-License-Identifier: MIT
 * A run of tcp_flows: its options and its results.
 */
#ifndef TRAFFIC_TCP_FLOWS_H
#define TRAFFIC_TCP_FLOWS_H

#include "events.h"
#include "flow_socket.h"
#include "pump.h"

struct run {
	struct path path;
	uint64_t planned_start_mono_ns; /* 0: as soon as all are connected */
	uint64_t duration_ns;
	uint64_t connect_interval_ns; /* between two SYNs */
	uint64_t setup_ns;	      /* limit for all handshakes, from the first SYN */
	uint64_t drain_ns;	      /* from the end to the RSTs */
	const char *report;

	struct events events;
	struct pump pump;
	bool with_pump;
	struct flow *flows; /* sorted by offset */
	uint32_t count;
	uint32_t connected;
	uint64_t start_mono_ns; /* offsets count from here; 0: the run ended before it */
	uint64_t end_mono_ns;	/* planned: start + last offset + duration */
	uint64_t ended_mono_ns; /* read after the last write */
	const char *stopped;	/* name of the signal that ended the run; NULL: none */
};

/* Writes the report as JSON, atomically. 0, or -errno after one message. */
int tcp_flows_report(const struct run *run);

#endif
