/* SPDX-License-Identifier: MIT
 * The sockets and flows of traffic_sink. Each socket in the epoll set has a handler, called when the socket is ready.
 */
#ifndef TRAFFIC_SINK_H
#define TRAFFIC_SINK_H

#include <stddef.h>
#include <sys/socket.h>

#include "goodput.h"
#include "pump.h"

struct sink;

/* First member of every struct in the epoll set. ready returns 0, or -errno after one message. */
struct sink_handler {
	int (*ready)(struct sink_handler *handler, struct sink *sink);
	struct sink_handler *next; /* in the list of listening sockets */
};

enum sink_end {
	SINK_OPEN,
	SINK_CLOSED, /* FIN */
	SINK_RESET,
	SINK_FAILED, /* with another error */
	SINK_ENDS,
};

/* A TCP connection, or the datagrams of one client port. Kept until the summary. */
struct sink_flow {
	struct sink_handler handler; /* TCP only */
	struct meter meter;
	const char *protocol;
	int fd; /* TCP only, while it is open */
	enum sink_end end;
	uint32_t range; /* number, from 1, of the range that has the server port; 0: none */
	struct sockaddr_storage peer;
	uint64_t first_mono_ns; /* accepted, or first datagram */
	uint64_t last_mono_ns;	/* the connection's end; UDP: 0 */
};

struct sink {
	struct events events;
	struct goodput goodput;
	struct pump pump;
	struct sink_handler pump_handler;
	struct sink_flow **flows; /* in order of appearance */
	uint32_t flow_count;
	uint32_t flow_capacity;
	struct sink_handler *listening; /* all listening sockets */
	struct udp_socket *udp;		/* the UDP sockets among them */
	uint64_t refused;		/* connections that could not be accepted */
};

/* Adds a listening socket to the epoll set. 0: the sink now owns the handler. -errno: the caller still does. */
int sink_listen(struct sink *sink, int fd, struct sink_handler *handler);

/* Frees flows and listening handlers. The end of the process closes the sockets. */
void sink_free(struct sink *sink);

/* Adds a flow from peer to port; NULL if there is no memory or there are too many flows. */
struct sink_flow *sink_add(struct sink *sink, const char *protocol, const struct sockaddr_storage *peer,
			   uint16_t port);

uint16_t port_of(const struct sockaddr_storage *address);

/* A socket bound to port on every address, IPv4 and (if the kernel has it) IPv6: fd, or -errno. */
int sink_bind(int type, uint16_t port);

/* Listens for TCP connections with congestion control cc (NULL: the host's default): DCTCP needs the receiver to run
 * DCTCP, too. `range` is kept with each flow. 0, or -errno after one message.
 */
int sink_tcp(struct sink *sink, uint16_t port, const char *cc, uint32_t range);

/* Receives datagrams on port. 0, or -errno after one message. */
int sink_udp(struct sink *sink, uint16_t port);

/* Datagrams that the kernel dropped at the UDP sockets: the buffer was full, or a checksum was wrong. */
uint64_t sink_udp_drops(const struct sink *sink);

void sink_tcp_close(struct sink_flow *flow, struct sink *sink);

/* Opens the kernel's traffic device (pump.h), if there is one. 0, or -errno after one message. */
int sink_pump_open(struct sink *sink);
/* Counts the bytes that the kernel has discarded since the last call. 0, or -errno after one message. */
int sink_pump_collect(struct sink *sink);
/* Requests an event at the first bytes after an idle interval. 0, or -errno after one message. */
int sink_pump_arm(struct sink *sink);

#endif
