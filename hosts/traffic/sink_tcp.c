// SPDX-License-Identifier: MIT
// Discards the bytes of connections in the kernel: MSG_TRUNC takes them off the queue without a copy.
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../lib/clock_ns.h"
#include "../../lib/report.h"
#include "sink.h"

enum {
	/* The kernel lowers BACKLOG to net.core.somaxconn. tcp_flows spaces the SYNs of long flows, so that the
	 * new connections fit.
	 */
	BACKLOG = 4096,
	DISCARD_BYTES = 256 << 20, /* per call; while more is left, epoll reports the socket again */
};

struct listener {
	struct sink_handler handler;
	int fd;
	uint16_t port;
	uint32_t range;
};

void sink_tcp_close(struct sink_flow *flow, struct sink *sink)
{
	/* The sender's RST may be lost. A FIN would then be retransmitted and answered again and again: send a RST. */
	static const struct linger reset = {.l_onoff = 1};
	uint64_t written_bytes;
	int error;

	if (flow->fd >= 0 && pump_is_open(&sink->pump)) {
		sink_pump_collect(sink);
		pump_stop(&sink->pump, flow->fd, &written_bytes, &error);
	}
	if (flow->fd >= 0 && flow->end == SINK_OPEN)
		setsockopt(flow->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	if (flow->fd >= 0)
		close(flow->fd);
	flow->fd = -1;
	flow->last_mono_ns = mono_now_ns();
}

static int discard(struct sink_handler *handler, struct sink *sink)
{
	struct sink_flow *flow = (struct sink_flow *)handler;
	ssize_t bytes = recv(flow->fd, NULL, DISCARD_BYTES, MSG_TRUNC | MSG_DONTWAIT);

	if (bytes > 0) {
		goodput_count(&sink->goodput, &flow->meter, (uint64_t)bytes, 1);
		return 0;
	}
	if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	flow->end = !bytes ? SINK_CLOSED : errno == ECONNRESET ? SINK_RESET : SINK_FAILED;
	if (flow->end == SINK_FAILED)
		complain("receiving from port %d on port %d: %s", flow->meter.src_port, flow->meter.dst_port,
			 strerror(errno));
	sink_tcp_close(flow, sink);
	return 0;
}

/* Starts receiving on a new connection. If the kernel receives (pump.h), only the connection's end wakes this
 * program.
 */
static int receive(struct sink *sink, struct sink_flow *flow)
{
	bool pumped = pump_is_open(&sink->pump);
	int err = pumped ? pump_discard(&sink->pump, flow->fd, sink->flow_count - 1) : 0;

	return err ? err
		   : events_socket(&sink->events, EPOLL_CTL_ADD, flow->fd, pumped ? EPOLLRDHUP : EPOLLIN,
				   flow);
}

static int accept_all(struct sink_handler *handler, struct sink *sink)
{
	const struct listener *listener = (struct listener *)handler;
	struct sockaddr_storage peer;
	struct sink_flow *flow;
	socklen_t length;
	int fd, err;

	while (true) {
		length = sizeof(peer);
		fd = accept4(listener->fd, (struct sockaddr *)&peer, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
			return 0;
		err = fd < 0 ? -errno : 0;
		flow = err ? NULL : sink_add(sink, "tcp", &peer, listener->port);
		if (!err && !flow)
			err = -ENOMEM;
		if (!err) {
			flow->handler.ready = discard;
			flow->range = listener->range;
			flow->fd = fd;
			err = receive(sink, flow);
		}
		if (!err)
			continue;
		if (!sink->refused++)
			complain("accepting a connection on port %d: %s; this one and perhaps others are "
				 "refused",
				 listener->port, strerror(-err));
		if (fd < 0)
			return err; /* the listener would stay ready for ever */
		if (flow)
			sink_tcp_close(flow, sink);
		else
			close(fd);
	}
}

int sink_tcp(struct sink *sink, uint16_t port, const char *cc, uint32_t range)
{
	struct listener *listener = malloc(sizeof(*listener));
	int fd = listener ? sink_bind(SOCK_STREAM, port) : -ENOMEM;
	int err = fd < 0 ? fd : 0;
	bool cc_failed = false;

	if (!err && cc && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, cc, (socklen_t)strlen(cc))) {
		err = -errno;
		cc_failed = true;
		complain("setting the congestion control %s on port %d: %s; see "
			 "net.ipv4.tcp_available_congestion_control",
			 cc, port, strerror(-err));
	} else if (!err && listen(fd, BACKLOG)) {
		err = -errno;
	}
	if (!err) {
		*listener = (struct listener){
			.handler.ready = accept_all, .fd = fd, .port = port, .range = range};
		err = sink_listen(sink, fd, &listener->handler);
	}
	if (!err)
		return 0;
	if (err == -EADDRINUSE)
		complain("port %d is busy: something listens there: free it or choose another with --tcp",
			 port);
	else if (!cc_failed)
		complain("listening on port %d: %s", port, strerror(-err));
	if (fd >= 0)
		close(fd);
	free(listener);
	return err;
}
