/* SPDX-License-Identifier: MIT
 * What comes to traffic_sink, and from whom. Sources are sockets; each says itself what to do when it is ready.
 */
#ifndef TRAFFIC_SINK_H
#define TRAFFIC_SINK_H

#include <stddef.h>
#include <sys/socket.h>

#include "goodput.h"

struct sink;

/* First member of everything that is in the epoll set. ready returns 0, or -errno after one line. */
struct source {
	int (*ready)(struct source *source, struct sink *sink);
	struct source *next; /* of those that listen */
};

enum sink_end {
	SINK_OPEN,
	SINK_CLOSED, /* FIN */
	SINK_RESET,
	SINK_FAILED, /* with another error */
};

/* A TCP connection, or the datagrams of one client port. Kept until the summary. */
struct sink_flow {
	struct source source; /* TCP */
	struct meter meter;
	const char *protocol;
	int fd; /* TCP, while it is open */
	enum sink_end end;
	struct sockaddr_storage peer;
	uint64_t first_mono_ns; /* accepted, or first datagram */
	uint64_t last_mono_ns;	/* its end; UDP: 0 */
};

struct sink {
	struct events events;
	struct goodput goodput;
	struct sink_flow **flows; /* in order of appearance */
	uint32_t flow_count;
	uint32_t flow_capacity;
	struct source *listening;
	struct udp_source *udp; /* those of them that take datagrams */
	uint64_t refused;	/* connections that could not be taken */
};

/* Watches a socket that listens, and takes its source over. 0 or -errno. */
int sink_listen(struct sink *sink, int fd, struct source *source);

/* Frees what was counted and who listened; the sockets go with the process. */
void sink_free(struct sink *sink);

/* A new flow from peer to port, NULL without memory. */
struct sink_flow *sink_add(struct sink *sink, const char *protocol, const struct sockaddr_storage *peer,
			   uint16_t port);

uint16_t port_of(const struct sockaddr_storage *address);

/* A socket that listens on port of every address, IPv4 and IPv6: fd, or -errno. */
int sink_bind(int type, uint16_t port);

/* Listens for connections; cc is theirs here as well (DCTCP's receiver needs it), NULL for the host's default.
 * 0, or -errno after one line.
 */
int sink_tcp(struct sink *sink, uint16_t port, const char *cc);

/* Takes datagrams. 0, or -errno after one line. */
int sink_udp(struct sink *sink, uint16_t port);

/* Datagrams that the sockets had no room for. */
uint64_t sink_udp_drops(const struct sink *sink);

void sink_tcp_close(struct sink_flow *flow);

#endif
