// SPDX-License-Identifier: MIT
// Causes tcp_probe events at --rate sends per second (0: as fast as the machine can): two processes send segments of one
// byte over their own loopback connections. Each send causes one event at the receiver, and often another when the ACK
// comes back. Run this program in a network namespace with loopback up. --seconds bounds its run.
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../lib/clock_ns.h"
#include "../../lib/options.h"
#include "../../lib/report.h"

enum {
	PROCESSES = 2,
	MAX_CONNECTIONS = 2048, /* of a process */
	SENDS_A_ROUND = 16,	/* on one connection, before the next connection's turn */
	BACKLOG = 128,
	DRAIN_BYTES = 4096,
};

const char *const program_name = "tcp_event_generator";

struct connection {
	int client;
	int server;
};

static struct connection connections[MAX_CONNECTIONS];

static int open_connections(uint64_t count)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	struct sockaddr *to = (struct sockaddr *)&address;
	int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	if (listener < 0 || bind(listener, to, length) || listen(listener, BACKLOG) ||
	    getsockname(listener, to, &length))
		return -errno;
	for (struct connection *each = connections; each < connections + count; each++) {
		each->client = socket(AF_INET, SOCK_STREAM, 0);
		if (each->client < 0 || connect(each->client, to, length) ||
		    setsockopt(each->client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
			return -errno;
		each->server = accept(listener, NULL, NULL);
		if (each->server < 0)
			return -errno;
	}
	return 0;
}

/* One round of a connection: sends single bytes, then reads all of them, so that buffers never fill. */
static int play_round(const struct connection *connection, uint64_t *sends)
{
	char bytes[DRAIN_BYTES];
	ssize_t received;

	for (int i = 0; i < SENDS_A_ROUND; i++) {
		if (send(connection->client, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1)
			++*sends;
		else if (errno != EAGAIN)
			return -errno;
	}
	do {
		received = recv(connection->server, bytes, sizeof(bytes), MSG_DONTWAIT);
	} while (received == (ssize_t)sizeof(bytes));
	return received < 0 && errno != EAGAIN ? -errno : 0;
}

static void hold_rate(uint64_t start_ns, uint64_t sends, uint64_t rate)
{
	uint64_t due_ns = rate ? start_ns + (uint64_t)((double)sends * 1e9 / (double)rate) : 0;
	uint64_t now_ns = mono_now_ns();

	if (due_ns > now_ns + 1000000) /* a sleep of less than 1 ms costs more than it gains */
		usleep((useconds_t)((due_ns - now_ns) / 1000));
}

/* What one process does. Returns its exit status. */
static int work(uint64_t seconds, uint64_t count, uint64_t rate, uint64_t *sends)
{
	int err = open_connections(count);
	uint64_t start_ns = mono_now_ns();

	if (err)
		complain("opening connections on loopback: %s: bring lo up (ip link set lo up), or allow "
			 "more open files (ulimit -n)",
			 strerror(-err));
	while (!err && mono_now_ns() < start_ns + seconds * 1000000000) {
		for (uint64_t i = 0; !err && i < count; i++) {
			err = play_round(&connections[i], sends);
			hold_rate(start_ns, *sends, rate);
		}
	}
	return err ? EXIT_INCOMPLETE : 0;
}

int main(int argc, char **argv)
{
	uint64_t seconds = 5, count = 8, rate = 0;
	const struct option_row rows[] = {
		OPTION_NUMBER("seconds", &seconds, 1, 3600),
		OPTION_NUMBER("connections", &count, 2, PROCESSES * MAX_CONNECTIONS),
		OPTION_NUMBER("rate", &rate, 0, 100000000),
		OPTIONS_END,
	};
	uint64_t *sends = mmap(NULL, PROCESSES * sizeof(*sends), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status, worst = 0;
	int err = options_read(
		rows, "tcp_event_generator [--seconds S] [--connections N] [--rate SENDS_A_SECOND]\n", argc,
		argv);

	if (err || sends == MAP_FAILED)
		return err > 0 ? EXIT_SUCCESS : EXIT_REFUSED;
	for (int i = 0; i < PROCESSES; i++)
		if (fork() == 0)
			_exit(work(seconds, count / PROCESSES, rate / PROCESSES, &sends[i]));
	while (wait(&status) > 0)
		worst = status ? EXIT_INCOMPLETE : worst;
	printf("{\"sends\":%" PRIu64 "}\n", sends[0] + sends[1]);
	return worst;
}
