/* SPDX-License-Identifier: MIT
 * The socket of one flow, from bind to its end. The first failure of a flow goes into its `error`.
 */
#ifndef TRAFFIC_FLOW_SOCKET_H
#define TRAFFIC_FLOW_SOCKET_H

#include <linux/tcp.h>

#include "ecn_setting.h"
#include "flow_list.h"
#include "pump.h"
#include "server.h"

/* The settings that all flows share. */
struct path {
	struct server server;
	struct sockaddr_storage local; /* of flows without `source`: known from their first connection on */
	struct ecn_setting ecn;	       /* set for each flow, if flows differ */
};

/* Makes a non-blocking socket with the flow's congestion control and client port, and connects it. 0 or -errno. */
int flow_connect(struct flow *flow, struct path *path);

/* Call when the handshake has ended: checks its result, the congestion control and ECN. 0 or -errno. */
int flow_connected(struct flow *flow, struct path *path);

/* Writes as much as iperf3 writes at once, or as much as the socket takes. 0 or -errno. */
int flow_write(struct flow *flow);

/* Finite flows: writes until the socket is full or all bytes and the FIN are written. 0 or -errno. */
int flow_write_all(struct flow *flow);

/* Finite flows in FLOW_CLOSING: 1 if every byte and the FIN are acknowledged, 0 if not, -errno if the flow failed. */
int flow_is_acked(struct flow *flow);

/* Records why the connection has ended. Always returns -errno. */
int flow_ended(struct flow *flow, const char *doing);

/* Call when the time for the handshake is over. */
void flow_unanswered(struct flow *flow, uint64_t waited_ns);

/* Lets the kernel write from now on, instead of flow_write and flow_write_all. 0 or -errno. */
int flow_pump(struct flow *flow, const struct pump *pump);

/* Stops writing and holds back unsent data. The socket stays open, so the ACKs of segments in flight find it. */
void flow_stop(struct flow *flow, const struct pump *pump);

/* Copies the kernel's counters. False: there are none. */
bool flow_account(struct flow *flow, struct tcp_info *info, uint16_t *timeouts);

/* Aborts the connection with a RST; unsent data is discarded. */
void flow_abort(struct flow *flow);

/* Closes the socket. The kernel completes the FIN handshake. */
void flow_close(struct flow *flow);

#endif
