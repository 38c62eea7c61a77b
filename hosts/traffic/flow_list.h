/* SPDX-License-Identifier: MIT
 * The flows that tcp_flows is asked for, one a line of its standard input:
 *   CONGESTION_CONTROL CLIENT_PORT SERVER_PORT OFFSET_NS
 * OFFSET_NS is from the common start to this flow's. Whoever calls has checked the plan as a whole; what is wrong
 * with a line is still said with its number.
 */
#ifndef TRAFFIC_FLOW_LIST_H
#define TRAFFIC_FLOW_LIST_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
	MOST_FLOWS = 32768, /* client ports are 16 bits, and each flow has its own */
	CC_NAME_BYTES = 16, /* TCP_CA_NAME_MAX, net/tcp.h */
};

enum flow_state {
	FLOW_NONE, /* no socket */
	FLOW_CONNECTING,
	FLOW_CONNECTED, /* nothing sent */
	FLOW_SENDING,
	FLOW_STOPPED, /* nothing more is written to it */
};

struct flow {
	char cc[CC_NAME_BYTES];
	uint16_t client_port;
	uint16_t server_port;
	uint64_t offset_ns;

	enum flow_state state;
	int fd;
	uint64_t connected_mono_ns;
	uint64_t started_mono_ns; /* its first write had been made by then; 0: none */
	uint64_t bytes_written;
	uint64_t bytes_acked;
	uint64_t retransmits; /* segments */
	char error[160];      /* empty: none */
};

/* Everything in file, by offset. *flows is to be freed. 0, or -errno after one line. */
int flow_list_read(FILE *file, struct flow **flows, uint32_t *count);

#endif
