/* SPDX-License-Identifier: MIT
 * The control socket. SOCK_SEQPACKET keeps message boundaries: one message is one request.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../lib/report.h"
#include "shell.h"

/* Removes a socket file without a listener: a killed switch left it. */
static int remove_stale(const struct sockaddr_un *address)
{
	struct stat status;
	int error = 0;
	int fd;

	if (lstat(address->sun_path, &status))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(status.st_mode))
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
		why = error == -EADDRINUSE
			      ? "in use: another program, probably a switch, listens there: stop it, or "
				"choose another path"
		      : error == -EEXIST       ? "exists and is not a socket: choose another path"
		      : error == -ENAMETOOLONG ? "has more than 107 characters, the most of a Unix socket's "
						 "path: choose a shorter one"
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
		complain("removing %s: %s (the next start removes it)", control->address.sun_path,
			 strerror(errno));
	control->fd = -1;
	control->bound = false;
}

/* Copies the kernel's drop counters, and the clock offset with its steps, into the executor. */
void control_measure(struct executor *executor)
{
	struct shell *shell = (struct shell *)((char *)executor - offsetof(struct shell, executor));

	for (uint32_t index = 0; index < shell->port_count; index++)
		ring_read_drops(&shell->ports[index].ring);
	executor->clock_steps = shell->clock.steps;
	executor->realtime_step_max_ns = shell->clock.max_step_ns;
	executor->realtime_minus_mono_ns = shell->clock.realtime_minus_mono_ns;
	executor->mono_ns = mono_now_ns();
	taps_measure(executor);
}

static void accept_client(struct control_socket *control)
{
	int send_bytes = 2 * EXECUTOR_REPLY_BYTES;
	int fd = accept4(control->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return;
	/* A reply is one message: the send buffer must hold the longest reply, whatever net.core.wmem_default is. After
	 * --drop-user the kernel refuses SO_SNDBUFFORCE, and wmem_default must suffice. */
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &send_bytes, sizeof(send_bytes));
	for (int index = 0; index < SHELL_MAX_CLIENTS; index++)
		if (control->clients[index] < 0) {
			control->clients[index] = fd;
			return;
		}
	send(fd, "error too many clients: close one\n", 34, MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

/* False: the client has closed its end, does not read its replies, or failed. */
static bool serve_client(struct control_socket *control, struct shell *shell, int fd)
{
	ssize_t got = recv(fd, control->request, sizeof(control->request) - 1, MSG_DONTWAIT);
	size_t length;

	if (got <= 0)
		return got < 0 && (errno == EAGAIN || errno == EINTR);
	control->request[got] = 0;
	length = executor_answer(&shell->executor, control->request, (size_t)got, control->reply,
				 sizeof(control->reply));
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
