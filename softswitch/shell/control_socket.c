/* SPDX-License-Identifier: MIT
 * The control socket: SOCK_SEQPACKET, so a message is a request and needs no framing. The shell answers for
 * what belongs to real time (lateness, rings) and adds its counters to the core's; everything else is the
 * core's.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../lib/report.h"
#include "shell.h"

/* A socket file that nobody listens on is left over from a switch that was killed. */
static int remove_stale(const struct sockaddr_un *address)
{
	struct stat found;
	int error = 0;
	int fd;

	if (lstat(address->sun_path, &found))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(found.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (!connect(fd, (const struct sockaddr *)address, sizeof(*address)))
		error = -EADDRINUSE;
	else if (errno != ECONNREFUSED)
		error = errno == EAGAIN || errno == EPROTOTYPE ? -EADDRINUSE : -errno;
	close(fd);
	if (!error && unlink(address->sun_path))
		error = -errno;
	return error;
}

static int bind_and_listen(struct control_socket *control)
{
	mode_t mask;
	int error;

	control->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (control->fd < 0)
		return -errno;
	error = remove_stale(&control->address);
	if (error)
		return error;
	mask = umask(0177);
	error = bind(control->fd, (struct sockaddr *)&control->address, sizeof(control->address)) ? -errno
												  : 0;
	umask(mask);
	if (error)
		return error;
	control->bound = true;
	return listen(control->fd, SHELL_MAX_CLIENTS) ? -errno : 0;
}

int control_open(struct control_socket *control, const char *path)
{
	const char *why;
	int error;

	control->fd = -1;
	control->bound = false;
	control->address = (struct sockaddr_un){.sun_family = AF_UNIX};
	for (int index = 0; index < SHELL_MAX_CLIENTS; index++)
		control->clients[index] = -1;
	if (strlen(path) >= sizeof(control->address.sun_path)) {
		error = -ENAMETOOLONG;
	} else {
		strcpy(control->address.sun_path, path);
		error = bind_and_listen(control);
	}
	if (error) {
		why = error == -EADDRINUSE ? "in use: another switch answers there"
		      : error == -EEXIST   ? "exists and is not a socket: choose another path"
					   : strerror(-error);
		complain("opening the control socket %s: %s", path, why);
		control_close(control);
	}
	return error;
}

void control_close(struct control_socket *control)
{
	for (int index = 0; index < SHELL_MAX_CLIENTS; index++)
		if (control->clients[index] >= 0)
			close(control->clients[index]);
	if (control->fd >= 0)
		close(control->fd);
	if (control->bound && unlink(control->address.sun_path) && errno != ENOENT)
		complain("removing %s: %s (the next start does)", control->address.sun_path, strerror(errno));
	control->fd = -1;
	control->bound = false;
}

struct reply {
	char *at;
	size_t bytes;
	size_t used;
};

/* Replies of the shell are far smaller than the buffer; one that were not would end early, without its last
 * line. */
__attribute__((format(printf, 2, 3))) static void put(struct reply *reply, const char *format, ...)
{
	size_t left = reply->bytes - reply->used;
	va_list arguments;
	int wanted;

	va_start(arguments, format);
	wanted = vsnprintf(reply->at + reply->used, left, format, arguments);
	va_end(arguments);
	if (wanted >= 0 && (size_t)wanted < left)
		reply->used += (size_t)wanted;
	else
		reply->at[reply->used] = 0;
}

static void put_number(struct reply *reply, const char *format, uint32_t port, uint64_t value)
{
	put(reply, format, port);
	put(reply, " %llu\n", (unsigned long long)value);
}

static void put_port(struct reply *reply, struct port_io *port)
{
	struct lateness *lateness = &port->transmit.lateness;

	ring_read_drops(&port->ring);
	put_number(reply, "port.%u.rx_ring_drops", port->number, port->ring.drops);
	put_number(reply, "port.%u.rx_ring_slots", port->number, port->ring.slots);
	put_number(reply, "port.%u.rx_truncated", port->number, port->ring.truncated);
	put_number(reply, "port.%u.rx_checksum_missing", port->number, port->ring.checksum_missing);
	put_number(reply, "port.%u.tx_frames", port->number, port->transmit.frames);
	put_number(reply, "port.%u.tx_bytes", port->number, port->transmit.bytes);
	put_number(reply, "port.%u.tx_errors", port->number, port->transmit.errors);
	put_number(reply, "port.%u.tx_retries", port->number, port->transmit.retries);
	put_number(reply, "port.%u.tx_last_errno", port->number, (uint64_t)port->transmit.last_errno);
	put_number(reply, "departures.%u", port->number, lateness->departures);
	put_number(reply, "gap_frames.%u", port->number, lateness->gap_frames);
	put_number(reply, "gap_error_over_10pct.%u", port->number, lateness->gap_errors);
	put_number(reply, "real_span_ns.%u", port->number, lateness->real_span_ns);
	put_number(reply, "virtual_span_ns.%u", port->number, lateness->virtual_span_ns);
}

size_t control_stats(struct shell *shell, char *buffer, size_t buffer_bytes)
{
	struct reply reply = {.at = buffer, .bytes = buffer_bytes};

	reply.used = core_control(shell->core, "stats", buffer, buffer_bytes);
	for (uint32_t index = 0; index < shell->port_count; index++)
		put_port(&reply, &shell->ports[index]);
	put(&reply, "clock_steps %llu\n", (unsigned long long)shell->clocks.steps);
	put(&reply, "realtime_step_max_ns %llu\n", (unsigned long long)shell->clocks.step_max_ns);
	put(&reply, "realtime_minus_mono_ns %lld\n", (long long)shell->clocks.realtime_minus_mono_ns);
	put(&reply, "loop_gap_max_ns %llu\n", (unsigned long long)shell->loop_gap_max_ns);
	put(&reply, "loops %llu\n", (unsigned long long)shell->loops);
	put(&reply, "sleeps %llu\n", (unsigned long long)shell->sleeps);
	put(&reply, "mono_ns %llu\n", (unsigned long long)mono_now_ns());
	return reply.used;
}

static size_t lateness_show(const struct lateness *lateness, char *buffer, size_t buffer_bytes)
{
	struct reply reply = {.at = buffer, .bytes = buffer_bytes};

	put(&reply, "ok\n");
	for (uint32_t bucket = 0; bucket < LATENESS_BUCKETS; bucket++)
		if (lateness->buckets[bucket])
			put(&reply, "%llu %llu\n", (unsigned long long)lateness_edge_ns(bucket),
			    (unsigned long long)lateness->buckets[bucket]);
	return reply.used;
}

static size_t control_lateness(struct shell *shell, const char *word, char *buffer, size_t buffer_bytes)
{
	char *end;
	unsigned long number = strtoul(word, &end, 10);

	if (!strcmp(word, "reset")) {
		for (uint32_t index = 0; index < shell->port_count; index++)
			lateness_reset(&shell->ports[index].transmit.lateness);
		shell->loop_gap_max_ns = 0;
		return (size_t)snprintf(buffer, buffer_bytes, "ok\n");
	}
	for (uint32_t index = 0; *word >= '0' && *word <= '9' && !*end && index < shell->port_count; index++)
		if (shell->ports[index].number == number)
			return lateness_show(&shell->ports[index].transmit.lateness, buffer, buffer_bytes);
	return (size_t)snprintf(buffer, buffer_bytes,
				"error no such port: lateness PORT, one that the switch was started with, or "
				"lateness reset\n");
}

static size_t answer(struct control_socket *control, struct shell *shell)
{
	const char *request = control->request;

	if (!strcmp(request, "stats"))
		return control_stats(shell, control->reply, sizeof(control->reply));
	if (!strncmp(request, "lateness ", 9))
		return control_lateness(shell, request + 9, control->reply, sizeof(control->reply));
	return core_control(shell->core, request, control->reply, sizeof(control->reply));
}

static void accept_client(struct control_socket *control)
{
	int send_bytes = 2 * SHELL_REPLY_BYTES;
	int fd = accept4(control->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return;
	/* A reply is one message, and the default buffer may be smaller than the longest. */
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &send_bytes, sizeof(send_bytes));
	for (int index = 0; index < SHELL_MAX_CLIENTS; index++)
		if (control->clients[index] < 0) {
			control->clients[index] = fd;
			return;
		}
	send(fd, "error too many clients: close one\n", 34, MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

/* False: the client is gone, or does not read its replies. */
static bool serve_client(struct control_socket *control, struct shell *shell, int fd)
{
	ssize_t got = recv(fd, control->request, sizeof(control->request) - 1, MSG_DONTWAIT);
	size_t length;

	if (got <= 0)
		return got < 0 && (errno == EAGAIN || errno == EINTR);
	control->request[got] = 0;
	if (got > SHELL_REQUEST_BYTES)
		length = (size_t)snprintf(control->reply, sizeof(control->reply),
					  "error request longer than %d bytes\n", SHELL_REQUEST_BYTES);
	else if (strlen(control->request) != (size_t)got)
		length = (size_t)snprintf(control->reply, sizeof(control->reply),
					  "error request with a NUL\n");
	else
		length = answer(control, shell);
	return send(fd, control->reply, length, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)length;
}

uint32_t control_poll_list(const struct control_socket *control, struct pollfd *list)
{
	uint32_t count = 0;

	list[count++] = (struct pollfd){.fd = control->fd, .events = POLLIN};
	for (int index = 0; index < SHELL_MAX_CLIENTS; index++)
		if (control->clients[index] >= 0)
			list[count++] = (struct pollfd){.fd = control->clients[index], .events = POLLIN};
	return count;
}

void control_serve(struct control_socket *control, struct shell *shell, const struct pollfd *list,
		   uint32_t count)
{
	for (uint32_t at = 1; at < count; at++) {
		if (!list[at].revents)
			continue;
		for (int index = 0; index < SHELL_MAX_CLIENTS; index++)
			if (control->clients[index] == list[at].fd &&
			    !serve_client(control, shell, list[at].fd)) {
				close(control->clients[index]);
				control->clients[index] = -1;
			}
	}
	if (list[0].revents)
		accept_client(control);
}
