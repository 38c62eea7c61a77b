/* SPDX-License-Identifier: MIT
 * A run of open_loop: what was asked, and what came of it.
 */
#ifndef TRAFFIC_OPEN_LOOP_H
#define TRAFFIC_OPEN_LOOP_H

#include "schedule.h"
#include "server.h"

enum { LATENESS_BUCKETS = 64 };

/* From a datagram's due time until its send had returned; bucket k counts up to 2^k ns. */
struct lateness {
	uint64_t counts[LATENESS_BUCKETS];
	uint64_t max_ns;
};

struct datagram_flow {
	int fd;
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
	bool show;
	struct schedule_options drawn;

	struct schedule schedule;
	struct datagram_flow *flows;
	uint64_t unsent; /* the host had no room for */
	struct lateness lateness;
	uint64_t start_mono_ns;
	uint64_t end_mono_ns;	/* planned */
	uint64_t ended_mono_ns; /* the program had nothing more to do by then */
	const char *stopped;	/* by which signal; NULL */
};

void lateness_count(struct lateness *lateness, uint64_t ns);

/* The report as JSON, whole or not at all. 0, or -errno after one line. */
int open_loop_report(const struct open_loop *run);

#endif
