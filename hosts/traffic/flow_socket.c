// SPDX-License-Identifier: MIT
// TCP as iperf3 uses it: writes of 128 KiB, and default buffers unless the flow sets its send buffer. But non-blocking.
#include "flow_socket.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../wire/flow_record.h"

enum {
	WRITE_BYTES = 128 << 10, /* iperf3's default for TCP */
	ERROR_BYTES = 160,
	/* Bytes/s: the next segment would leave after minutes. TCP paces by itself if there is no fq qdisc. */
	STANDSTILL_RATE = 1,
};

/* Any finite maximum rate starts TCP's own pacing, at the rate that follows from the window. This maximum is too high
 * to limit that rate.
 */
#define PACING_UNBOUNDED (ULONG_MAX - 1)

/* The kernel's states of a connection, net/tcp_states.h. */
enum { STATE_FIN_WAIT2 = 5, STATE_TIME_WAIT = 6, STATE_CLOSE = 7 };

/* Kernels add fields at the end of struct tcp_info; this machine's linux/tcp.h may be older than its kernel. */
struct tcp_info_6_7 {
	struct tcp_info info;
	uint32_t rcv_wnd;
	uint32_t rehash;
	uint16_t total_rto;
	uint16_t total_rto_recoveries;
	uint32_t total_rto_time;
};

__attribute__((format(printf, 3, 4))) static int fail(struct flow *flow, int err, const char *format, ...)
{
	va_list arguments;

	if (flow->error)
		return err;
	flow->error = malloc(ERROR_BYTES);
	if (!flow->error)
		return err;
	va_start(arguments, format);
	vsnprintf(flow->error, ERROR_BYTES, format, arguments);
	va_end(arguments);
	return err;
}

static int open_socket(struct flow *flow, const struct path *path)
{
	struct sockaddr_storage local = {.ss_family = path->server.address.ss_family};
	const int on = 1, buffer = (int)(flow->buffer_bytes / 2);
	const unsigned long rate = PACING_UNBOUNDED;
	socklen_t length;

	if (flow->source && flow->source->ss_family != local.ss_family)
		return fail(flow, -EAFNOSUPPORT,
			    "its address and the server's are not both IPv4 or both IPv6");
	if (flow->source)
		local = *flow->source;
	length = set_port(&local, flow->client_port);
	flow->fd = socket(local.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (flow->fd < 0)
		return fail(flow, -errno, "making a socket: %s", strerror(errno));
	if (setsockopt(flow->fd, IPPROTO_TCP, TCP_CONGESTION, flow->cc, (socklen_t)strlen(flow->cc)))
		return fail(flow, -errno,
			    "setting the congestion control %s: %s; see "
			    "net.ipv4.tcp_available_congestion_control",
			    flow->cc, strerror(errno));
	/* The kernel doubles the value. */
	if (flow->buffer_bytes && setsockopt(flow->fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer)))
		return fail(flow, -errno, "setting a send buffer of %u bytes: %s", flow->buffer_bytes,
			    strerror(errno));
	if (flow->pacing && setsockopt(flow->fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate)))
		return fail(flow, -errno, "starting the pacing: %s", strerror(errno));
	/* Otherwise an earlier flow that ended with a FIN blocks the port for a minute (TIME-WAIT). */
	setsockopt(flow->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(flow->fd, (struct sockaddr *)&local, length))
		return fail(flow, -errno, "binding client port %d: %s", flow->client_port, strerror(errno));
	return 0;
}

int flow_connect(struct flow *flow, struct path *path)
{
	struct sockaddr_storage server = path->server.address;
	int err = open_socket(flow, path);

	if (err)
		return err;
	err = ecn_setting_set(&path->ecn, flow->ecn);
	if (err)
		return fail(flow, err, "setting net.ipv4.tcp_ecn: %s", strerror(-err));
	if (connect(flow->fd, (struct sockaddr *)&server, set_port(&server, flow->server_port)) &&
	    errno != EINPROGRESS)
		return fail(flow, -errno, "connecting: %s", strerror(errno));
	flow->state = FLOW_CONNECTING;
	return 0;
}

int flow_ended(struct flow *flow, const char *doing)
{
	int err = 0;
	socklen_t length = sizeof(err);

	getsockopt(flow->fd, SOL_SOCKET, SO_ERROR, &err, &length);
	return fail(flow, err ? -err : -EPIPE, "%s: %s%s", doing,
		    err ? strerror(err) : "the server closed the connection",
		    err == ECONNREFUSED ? "; is traffic_sink running there?" : "");
}

void flow_unanswered(struct flow *flow, uint64_t waited_ns)
{
	if (flow->state == FLOW_CONNECTING)
		fail(flow, -ETIMEDOUT, "connecting: no answer within %.3f s: is the path up?",
		     (double)waited_ns / 1e9);
}

int flow_connected(struct flow *flow, struct path *path)
{
	char cc[CC_NAME_BYTES + 1] = "";
	socklen_t cc_length = CC_NAME_BYTES;
	struct tcp_info info = {0};
	socklen_t length = sizeof(info);
	int err = 0;
	socklen_t err_length = sizeof(err);

	getsockopt(flow->fd, SOL_SOCKET, SO_ERROR, &err, &err_length);
	if (err)
		return fail(flow, -err, "connecting: %s%s", strerror(err),
			    err == ECONNREFUSED ? "; is traffic_sink running there?" : "");
	/* The kernel may have chosen another algorithm: a route can lock it, a BPF program can set it. */
	if (getsockopt(flow->fd, IPPROTO_TCP, TCP_CONGESTION, cc, &cc_length) || strcmp(cc, flow->cc))
		return fail(flow, -EPROTO, "its congestion control is %s, not %s as requested", cc, flow->cc);
	if (getsockopt(flow->fd, IPPROTO_TCP, TCP_INFO, &info, &length))
		return fail(flow, -errno, "asking for TCP_INFO: %s", strerror(errno));
	if (flow->ecn && !(info.tcpi_options & TCPI_OPT_ECN))
		return fail(flow, -EPROTO,
			    "ECN was not negotiated: net.ipv4.tcp_ecn must be 1 here, 1 or 2 on the server");
	if (!flow->source && !path->local.ss_family) {
		length = sizeof(path->local);
		getsockname(flow->fd, (struct sockaddr *)&path->local, &length);
	}
	flow->state = FLOW_CONNECTED;
	return 0;
}

static const char data[WRITE_BYTES];

int flow_write(struct flow *flow)
{
	ssize_t wrote = send(flow->fd, data, sizeof(data), MSG_DONTWAIT | MSG_NOSIGNAL);

	if (wrote < 0 && errno != EAGAIN && errno != EINTR)
		return fail(flow, -errno, "sending: %s", strerror(errno));
	if (wrote > 0)
		flow->bytes_written += (uint64_t)wrote;
	return 0;
}

int flow_write_all(struct flow *flow)
{
	while (flow->bytes_written < flow->bytes) {
		uint64_t left = flow->bytes - flow->bytes_written;
		ssize_t wrote = send(flow->fd, data, left < sizeof(data) ? left : sizeof(data),
				     MSG_DONTWAIT | MSG_NOSIGNAL);

		if (wrote < 0 && errno == EAGAIN)
			return 0;
		if (wrote < 0 && errno != EINTR)
			return fail(flow, -errno, "sending: %s", strerror(errno));
		if (wrote > 0)
			flow->bytes_written += (uint64_t)wrote;
	}
	if (shutdown(flow->fd, SHUT_WR))
		return fail(flow, -errno, "sending the FIN: %s", strerror(errno));
	flow->state = FLOW_CLOSING;
	return 0;
}

int flow_is_acked(struct flow *flow)
{
	struct tcp_info info = {0};
	socklen_t length = sizeof(info);
	int err = 0;
	socklen_t err_length = sizeof(err);

	if (getsockopt(flow->fd, SOL_SOCKET, SO_ERROR, &err, &err_length) || err)
		return fail(flow, err ? -err : -errno, "sending: %s", strerror(err ? err : errno));
	if (getsockopt(flow->fd, IPPROTO_TCP, TCP_INFO, &info, &length))
		return fail(flow, -errno, "asking for TCP_INFO: %s", strerror(errno));
	if (info.tcpi_state < STATE_FIN_WAIT2 || info.tcpi_state > STATE_CLOSE)
		return 0;
	/* The traffic device may have read, and so cleared, the socket's error. The SYN counts as a byte. */
	if (info.tcpi_bytes_acked <= flow->bytes)
		return fail(flow, -ECONNRESET, "sending: closed after %llu of %" PRIu64 " bytes",
			    (unsigned long long)info.tcpi_bytes_acked, flow->bytes);
	return 1;
}

int flow_pump(struct flow *flow, const struct pump *pump)
{
	int err = pump_send(pump, flow->fd, flow->bytes, flow->window_segments);

	if (err)
		return fail(flow, err, "handing the socket to /dev/bufferscope-traffic: %s", strerror(-err));
	if (flow_is_finite(flow))
		flow->state = FLOW_CLOSING;
	return 0;
}

void flow_stop(struct flow *flow, const struct pump *pump)
{
	const unsigned int rate = STANDSTILL_RATE;
	int err;

	if ((flow->state == FLOW_SENDING || flow->state == FLOW_CLOSING) && pump_is_open(pump) &&
	    !pump_stop(pump, flow->fd, &flow->bytes_written, &err) && err)
		fail(flow, err, "sending: %s", strerror(-err));
	setsockopt(flow->fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate));
	flow->state = FLOW_STOPPED;
}

bool flow_account(struct flow *flow, struct tcp_info *info, uint16_t *timeouts)
{
	struct tcp_info_6_7 all = {0};
	socklen_t length = sizeof(all);
	uint64_t counted;

	*timeouts = FLOW_TIMEOUTS_UNKNOWN;
	if (flow->fd < 0 || getsockopt(flow->fd, IPPROTO_TCP, TCP_INFO, &all, &length))
		return false;
	*info = all.info;
	if (length >= offsetof(struct tcp_info_6_7, total_rto_recoveries))
		*timeouts = all.total_rto;
	flow->retransmits = all.info.tcpi_total_retrans;
	/* tcpi_bytes_acked: since Linux 4.1. The kernel counts SYN and FIN as a byte each. */
	if (length >= offsetof(struct tcp_info, tcpi_bytes_received) && all.info.tcpi_bytes_acked) {
		counted = all.info.tcpi_bytes_acked - 1;
		flow->bytes_acked = flow_is_finite(flow) && counted > flow->bytes ? flow->bytes : counted;
	}
	return true;
}

void flow_abort(struct flow *flow)
{
	const struct linger at_once = {.l_onoff = 1};

	if (flow->fd < 0)
		return;
	setsockopt(flow->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	flow_close(flow);
	flow->state = FLOW_NONE;
}

void flow_close(struct flow *flow)
{
	if (flow->fd >= 0)
		close(flow->fd);
	flow->fd = -1;
	flow->state = FLOW_ENDED;
}
