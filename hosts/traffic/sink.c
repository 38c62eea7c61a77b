// SPDX-License-Identifier: MIT
// Shared by TCP and UDP sinks: their sockets and the list of flows.
#include "sink.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../lib/clock_ns.h"
#include "flow_list.h"

uint16_t port_of(const struct sockaddr_storage *address)
{
	return ntohs(address->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)address)->sin6_port
						    : ((const struct sockaddr_in *)address)->sin_port);
}

struct sink_flow *sink_add(struct sink *sink, const char *protocol, const struct sockaddr_storage *peer,
			   uint16_t port)
{
	uint32_t capacity = sink->flow_capacity ? 2 * sink->flow_capacity : 64;
	struct sink_flow *flow, **flows;

	if (sink->flow_count == MOST_FLOWS)
		return NULL;
	if (sink->flow_count == sink->flow_capacity) {
		flows = realloc(sink->flows, capacity * sizeof(*flows));
		if (!flows)
			return NULL;
		sink->flows = flows;
		sink->flow_capacity = capacity;
	}
	flow = malloc(sizeof(*flow));
	if (!flow)
		return NULL;
	*flow = (struct sink_flow){
		.protocol = protocol,
		.fd = -1,
		.peer = *peer,
		.meter = {.src_port = port_of(peer), .dst_port = port},
		.first_mono_ns = mono_now_ns(),
	};
	sink->flows[sink->flow_count++] = flow;
	return flow;
}

int sink_listen(struct sink *sink, int fd, struct sink_handler *handler)
{
	int err = events_socket(&sink->events, EPOLL_CTL_ADD, fd, EPOLLIN, handler);

	if (!err) {
		handler->next = sink->listening;
		sink->listening = handler;
	}
	return err;
}

void sink_free(struct sink *sink)
{
	for (uint32_t index = 0; index < sink->flow_count; index++)
		free(sink->flows[index]);
	free(sink->flows);
	while (sink->listening) {
		struct sink_handler *handler = sink->listening;

		sink->listening = handler->next;
		free(handler);
	}
}

int sink_bind(int type, uint16_t port)
{
	struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	struct sockaddr_in ipv4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	const int on = 1, off = 0;
	int fd, err, family = AF_INET6;

	fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0) { /* a kernel without IPv6 */
		family = AF_INET;
		fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	}
	if (fd < 0)
		return -errno;
	if (family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	/* TCP only: SO_REUSEADDR would let two UDP sockets share a port. */
	if (type == SOCK_STREAM)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	err = family == AF_INET6 ? bind(fd, (struct sockaddr *)&ipv6, sizeof(ipv6))
				 : bind(fd, (struct sockaddr *)&ipv4, sizeof(ipv4));
	if (err) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}
