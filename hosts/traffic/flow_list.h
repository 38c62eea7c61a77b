/* SPDX-License-Identifier: MIT
 * The flows of tcp_flows, one a line of its standard input:
 *   CONGESTION_CONTROL CLIENT_PORT SERVER_PORT OFFSET_NS
 * OFFSET_NS is the delay of this flow after the common start. The caller has checked the plan as a whole; a malformed
 * line is still reported with its number.
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
	uint64_t started_mono_ns; /* read after the first write; 0: none */
	uint64_t bytes_written;
	uint64_t bytes_acked;
	uint64_t retransmits; /* segments */
	char error[160];      /* empty: none */
};

/* Reads all flows of file, sorted by offset. The caller frees *flows. 0, or -errno after one message. */
int flow_list_read(FILE *file, struct flow **flows, uint32_t *count);

#endif
