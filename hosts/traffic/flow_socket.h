/* SPDX-License-Identifier: MIT
 * The socket of one flow, from its port to its RST. Every failure is put into the flow's error, with its ports.
 */
#ifndef TRAFFIC_FLOW_SOCKET_H
#define TRAFFIC_FLOW_SOCKET_H

#include "flow_list.h"
#include "server.h"

/* What all flows have in common. */
struct path {
	struct server server;
	uint64_t mss_bytes; /* 0: as the path has it */
	bool ecn;	    /* a connection without it is a failure */
};

/* A non-blocking socket with its congestion control and client port, connecting. 0 or -errno. */
int flow_connect(struct flow *flow, const struct path *path);

/* The connection is up: is it what was asked for? 0 or -errno. */
int flow_connected(struct flow *flow, const struct path *path);

/* One write of as much as iperf3 writes at once, or what there is room for. 0 or -errno. */
int flow_write(struct flow *flow);

/* Why the kernel says that this socket is at its end. Always -errno. */
int flow_ended(struct flow *flow, const char *doing);

/* Nothing more is written; no more is sent either, so that the ACKs of what is under way find the socket. */
void flow_stop(struct flow *flow);

/* Takes what the kernel counted. */
void flow_account(struct flow *flow);

/* Away with it, and with all that it had not sent: RST. */
void flow_close(struct flow *flow);

#endif
