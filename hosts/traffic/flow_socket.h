/* SPDX-License-Identifier: MIT
 * The socket of one flow, from bind to RST. The first failure of a flow goes into its `error`.
 */
#ifndef TRAFFIC_FLOW_SOCKET_H
#define TRAFFIC_FLOW_SOCKET_H

#include "flow_list.h"
#include "pump.h"
#include "server.h"

/* The settings that all flows share. */
struct path {
	struct server server;
	uint64_t mss_bytes; /* 0: the path's MSS */
	bool ecn;	    /* a connection without ECN is a failure */
};

/* Makes a non-blocking socket with the flow's congestion control and client port, and connects it. 0 or -errno. */
int flow_connect(struct flow *flow, const struct path *path);

/* Call when the handshake has ended: checks its result, the congestion control and ECN. 0 or -errno. */
int flow_connected(struct flow *flow, const struct path *path);

/* Writes as much as iperf3 writes at once, or as much as the socket takes. 0 or -errno. */
int flow_write(struct flow *flow);

/* Records why the connection has ended. Always -errno. */
int flow_ended(struct flow *flow, const char *doing);

/* Lets the kernel write from now on, instead of flow_write. 0 or -errno. */
int flow_pump(struct flow *flow, const struct pump *pump);

/* Stops writing and holds back unsent data. The socket stays open, so the ACKs of segments in flight find it. */
void flow_stop(struct flow *flow, const struct pump *pump);

/* Copies the kernel's counters from TCP_INFO. */
void flow_account(struct flow *flow);

/* Aborts the connection with a RST; unsent data is discarded. */
void flow_close(struct flow *flow);

#endif
