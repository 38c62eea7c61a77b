/* SPDX-License-Identifier: MIT
 * A run of open_loop: its options and its results.
 */
#ifndef TRAFFIC_OPEN_LOOP_H
#define TRAFFIC_OPEN_LOOP_H

#include "recorded.h"
#include "schedule.h"
#include "send_lateness.h"
#include "server.h"

struct datagram_flow {
	int fd;
	uint8_t ecn; /* of the latest datagram */
	uint64_t datagrams;
	uint64_t ip_bytes;
};

struct open_loop {
	struct server server;
	uint64_t server_port;
	uint64_t first_client_port;
	uint64_t planned_start_mono_ns;
	uint64_t duration_ns;
	const char *report;
	const char *departures; /* NULL: drawn */
	bool show;
	struct schedule_options drawn;

	struct schedule schedule;
	struct recorded recorded; /* in place of the schedule, with `departures` */
	struct datagram_flow *flows;
	uint64_t unsent; /* datagrams for which the host had no buffer */
	struct send_lateness lateness;
	uint64_t start_mono_ns;
	uint64_t end_mono_ns;	/* planned */
	uint64_t ended_mono_ns; /* actual: end_mono_ns or later, unless a signal or an error ended the run */
	const char *stopped;	/* name of the signal that ended the run; NULL: none */
};

/* Writes the report as JSON, atomically. 0, or -errno after one message. */
int open_loop_report(const struct open_loop *run);

#endif
