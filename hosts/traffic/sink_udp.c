// SPDX-License-Identifier: MIT
// Counts datagrams by client port, without reading their contents.
#include <errno.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../lib/report.h"
#include "sink.h"

#ifndef SO_MEMINFO
#define SO_MEMINFO 55 /* asm-generic/socket.h */
#endif

enum {
	DATAGRAMS_AT_ONCE = 64,
	RECEIVE_BUFFER_BYTES = 64 << 20, /* 0.5 s of MTU 1500 at 1 Gb/s; filled only while reads are late */
	PORTS = 1 << 16,
};

struct udp_socket {
	struct sink_handler handler;
	int fd;
	uint16_t port;
	struct udp_socket *next;
	struct sink_flow *flows[PORTS]; /* by client port, which identifies a flow: one host sends */
};

static int take(struct sink_handler *handler, struct sink *sink)
{
	struct udp_socket *udp = (struct udp_socket *)handler;
	struct sockaddr_storage peers[DATAGRAMS_AT_ONCE];
	struct mmsghdr messages[DATAGRAMS_AT_ONCE];
	struct iovec nothing = {0};
	int count;

	for (int index = 0; index < DATAGRAMS_AT_ONCE; index++)
		messages[index] = (struct mmsghdr){.msg_hdr = {.msg_name = peers + index,
							       .msg_namelen = sizeof(*peers),
							       .msg_iov = &nothing,
							       .msg_iovlen = 1}};
	count = recvmmsg(udp->fd, messages, DATAGRAMS_AT_ONCE, MSG_TRUNC | MSG_DONTWAIT, NULL);
	for (int index = 0; index < count; index++) {
		struct sink_flow **flow = udp->flows + port_of(peers + index);

		if (!*flow)
			*flow = sink_add(sink, "udp", peers + index, udp->port);
		if (!*flow) {
			complain("counting datagrams of a new client port: no memory, or too many flows");
			return -ENOMEM;
		}
		goodput_count(&sink->goodput, &(*flow)->meter, messages[index].msg_len, 1);
	}
	return 0;
}

int sink_udp(struct sink *sink, uint16_t port)
{
	struct udp_socket *udp = calloc(1, sizeof(*udp));
	const int bytes = RECEIVE_BUFFER_BYTES;
	int fd = udp ? sink_bind(SOCK_DGRAM, port) : -ENOMEM;
	int err = fd < 0 ? fd : 0;

	if (!err) {
		/* Only CAP_NET_ADMIN may exceed net.core.rmem_max; without it the kernel takes that maximum. */
		if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
			setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
		udp->handler.ready = take;
		udp->fd = fd;
		udp->port = port;
		err = sink_listen(sink, fd, &udp->handler);
	}
	if (!err) {
		udp->next = sink->udp;
		sink->udp = udp;
		return 0;
	}
	if (err == -EADDRINUSE)
		complain("UDP port %d is busy: something listens there: free it or choose another with --udp",
			 port);
	else
		complain("listening on UDP port %d: %s", port, strerror(-err));
	if (fd >= 0)
		close(fd);
	free(udp);
	return err;
}

uint64_t sink_udp_drops(const struct sink *sink)
{
	uint64_t drops = 0;

	for (const struct udp_socket *udp = sink->udp; udp; udp = udp->next) {
		uint32_t memory[SK_MEMINFO_VARS] = {0};
		socklen_t length = sizeof(memory);

		if (!getsockopt(udp->fd, SOL_SOCKET, SO_MEMINFO, memory, &length))
			drops += memory[SK_MEMINFO_DROPS];
	}
	return drops;
}
