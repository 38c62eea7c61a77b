// SPDX-License-Identifier: MIT
// Receives UDP in batches with one system call each. Stamps and the drop counter come as control messages.
#include "socket.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/report.h"

/* Without an address: a dual-stack socket, or IPv4 alone on a kernel without IPv6. */
static int open_socket(const struct address *address, struct sockaddr_storage *bind_to, socklen_t *length)
{
	int family = address->storage.ss_family;
	int v6_only = family == AF_INET6;
	int fd;

	*bind_to = address->storage;
	*length = address->length;
	fd = socket(family == AF_INET ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && family != AF_INET &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof(v6_only))) {
		close(fd);
		return -1;
	}
	if (fd >= 0 && family == AF_UNSPEC) {
		bind_to->ss_family = AF_INET6;
		*length = sizeof(struct sockaddr_in6);
	}
	if (fd < 0 && family == AF_UNSPEC && errno == EAFNOSUPPORT) {
		bind_to->ss_family = AF_INET; /* the port has the same offset in both */
		*length = sizeof(struct sockaddr_in);
		fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	}
	return fd;
}

/* Without CAP_NET_ADMIN the kernel limits the request to net.core.rmem_max. It then doubles the size. A result below
 * the request is reported, because a small buffer drops datagrams.
 */
static int set_buffer(struct receiver *receiver, uint64_t asked_bytes)
{
	int value = (int)asked_bytes;
	socklen_t length = sizeof(value);

	if (setsockopt(receiver->fd, SOL_SOCKET, SO_RCVBUFFORCE, &value, sizeof(value)) &&
	    setsockopt(receiver->fd, SOL_SOCKET, SO_RCVBUF, &value, sizeof(value)))
		return -errno;
	if (getsockopt(receiver->fd, SOL_SOCKET, SO_RCVBUF, &value, &length))
		return -errno;
	receiver->buffer_bytes = (uint64_t)value;
	if (receiver->buffer_bytes < asked_bytes)
		complain("receive buffer is %llu bytes instead of %llu: postcards may be dropped in bursts; "
			 "run with CAP_NET_ADMIN or raise net.core.rmem_max",
			 (unsigned long long)receiver->buffer_bytes, (unsigned long long)asked_bytes);
	return 0;
}

static const char *bind_advice(int err)
{
	switch (err) {
	case EADDRINUSE:
		return "; another program has this port: stop it or choose another port";
	case EADDRNOTAVAIL:
		return "; no interface of this network namespace has this address";
	case EACCES:
		return "; ports below 1024 need CAP_NET_BIND_SERVICE";
	default:
		return "";
	}
}

/* The first socket takes the port for itself, so another collector's sockets cannot share it unnoticed; only then it
 * lets the others join.
 */
static int bind_socket(struct receiver *receiver, const struct receiver *first,
		       struct sockaddr_storage *bind_to, socklen_t length)
{
	int on = 1;

	if ((first && setsockopt(receiver->fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on))) ||
	    bind(receiver->fd, (struct sockaddr *)bind_to, length))
		return -errno;
	return first ? 0 : setsockopt(receiver->fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) ? -errno : 0;
}

static int open_bound(struct receiver *receiver, const struct receiver *first, const struct address *address)
{
	struct sockaddr_storage bind_to;
	socklen_t length;
	int on = 1;
	int err;

	receiver->fd = open_socket(address, &bind_to, &length);
	if (receiver->fd < 0) {
		err = -errno;
		complain("opening a UDP socket for %s: %s", address->text, strerror(-err));
		return err;
	}
	if (setsockopt(receiver->fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) ||
	    setsockopt(receiver->fd, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof(on))) {
		err = -errno;
		complain("setting up the socket for %s: %s", address->text, strerror(-err));
		return err;
	}
	err = bind_socket(receiver, first, &bind_to, length);
	if (err)
		complain("listening on %s: %s%s", address->text, strerror(-err), bind_advice(-err));
	return err;
}

static void prepare_messages(struct receiver *receiver)
{
	for (unsigned int index = 0; index < SOCKET_BATCH; index++) {
		receiver->messages[index].msg_hdr.msg_iov = &receiver->iov[index];
		receiver->messages[index].msg_hdr.msg_iovlen = 1;
		receiver->messages[index].msg_hdr.msg_control = receiver->control[index];
		if (receiver->source)
			receiver->messages[index].msg_hdr.msg_name = &receiver->senders[index];
	}
}

int receiver_open(struct receiver *receiver, const struct receiver *first, const struct options *options)
{
	const struct address *address = &options->listen;
	int err;

	memset(receiver, 0, sizeof(*receiver));
	receiver->fd = -1;
	receiver->source = *options->source.text ? &options->source : NULL;
	err = open_bound(receiver, first, address);
	if (err)
		goto fail;
	prepare_messages(receiver);
	err = set_buffer(receiver, options->receive_buffer_bytes / options->receivers);
	if (!err)
		return 0;
	complain("setting up the socket for %s: %s", address->text, strerror(-err));

fail:
	receiver_close(receiver);
	return err;
}

void receiver_close(struct receiver *receiver)
{
	if (receiver->fd >= 0)
		close(receiver->fd);
	receiver->fd = -1;
}

static void count_drops(struct receiver *receiver, uint32_t dropped)
{
	/* Never decreases: a datagram may carry an older count than the last query returned. */
	if ((int32_t)(dropped - receiver->last_dropped) <= 0)
		return;
	receiver->kernel_drops += dropped - receiver->last_dropped;
	receiver->last_dropped = dropped;
}

static void read_control(struct receiver *receiver, struct msghdr *message, struct arrival *arrival)
{
	struct cmsghdr *control;
	struct timespec stamp;
	uint32_t dropped;

	arrival->realtime_ns = 0;
	for (control = CMSG_FIRSTHDR(message); control; control = CMSG_NXTHDR(message, control)) {
		if (control->cmsg_level != SOL_SOCKET)
			continue;
		if (control->cmsg_type == SCM_TIMESTAMPNS) {
			memcpy(&stamp, CMSG_DATA(control), sizeof(stamp));
			arrival->realtime_ns = stamp.tv_sec * 1000000000LL + stamp.tv_nsec;
		} else if (control->cmsg_type == SO_RXQ_OVFL) {
			memcpy(&dropped, CMSG_DATA(control), sizeof(dropped));
			count_drops(receiver, dropped);
		}
	}
}

int receiver_take(struct receiver *receiver, uint8_t *place, unsigned int stride, unsigned int data_bytes,
		  unsigned int count)
{
	int taken;

	for (unsigned int index = 0; index < count; index++) {
		receiver->iov[index].iov_base = place + (size_t)index * stride;
		receiver->iov[index].iov_len = data_bytes;
		receiver->messages[index].msg_hdr.msg_controllen = SOCKET_CONTROL_BYTES;
		receiver->messages[index].msg_hdr.msg_namelen = sizeof(receiver->senders[index]);
	}
	/* MSG_TRUNC: returns the full length, so a datagram that is too long is detected. */
	taken = recvmmsg(receiver->fd, receiver->messages, count, MSG_DONTWAIT | MSG_TRUNC, NULL);
	if (taken < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	for (int index = 0; index < taken; index++) {
		receiver->arrivals[index].bytes = receiver->messages[index].msg_len;
		receiver->arrivals[index].is_stranger =
			receiver->source &&
			!address_same_host(&receiver->senders[index], &receiver->source->storage);
		receiver->strangers += receiver->arrivals[index].is_stranger;
		read_control(receiver, &receiver->messages[index].msg_hdr, &receiver->arrivals[index]);
	}
	return taken;
}

uint64_t receiver_kernel_drops(struct receiver *receiver)
{
	uint32_t info[SK_MEMINFO_VARS] = {0};
	socklen_t length = sizeof(info);

	if (!getsockopt(receiver->fd, SOL_SOCKET, SO_MEMINFO, info, &length))
		count_drops(receiver, info[SK_MEMINFO_DROPS]);
	return receiver->kernel_drops;
}
