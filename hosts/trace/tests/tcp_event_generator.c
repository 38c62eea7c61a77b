// SPDX-License-Identifier: MIT
// Causes tcp_probe events, as fast as the machine can or at --rate sends per second: it sends segments of one byte over
// its own loopback connections. Each send causes one event at the receiver, and often another when the ACK comes back.
// Run this program in a network namespace with loopback up. --seconds bounds its run.
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../../../lib/clock_ns.h"
#include "../../../lib/report.h"

enum {
	MAX_CONNECTIONS = 4096,
	MAX_THREADS = 64,
	SENDS_A_ROUND = 16, /* on one connection, before the next connection's turn */
	BACKLOG = 128,
	DRAIN_BYTES = 4096,
};

const char *const program_name = "tcp_event_generator";

struct connection {
	int client;
	int server;
};

struct worker {
	pthread_t thread;
	struct connection *connections;
	uint64_t count;
	uint64_t end_ns;
	double sends_per_s; /* 0: unlimited */
	uint64_t sends;
	int err;
};

static int open_listener(struct sockaddr_in6 *address)
{
	socklen_t length = sizeof(*address);
	int listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int off = 0;

	*address = (struct sockaddr_in6){.sin6_family = AF_INET6};
	/* IPv4 over an IPv6 socket, so the addresses are IPv4-mapped */
	address->sin6_addr.s6_addr[10] = address->sin6_addr.s6_addr[11] = 0xff;
	address->sin6_addr.s6_addr[12] = 127;
	address->sin6_addr.s6_addr[15] = 1;
	if (listener < 0 || setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) ||
	    bind(listener, (struct sockaddr *)address, sizeof(*address)) || listen(listener, BACKLOG) ||
	    getsockname(listener, (struct sockaddr *)address, &length))
		return -errno;
	return listener;
}

static int open_connection(struct connection *connection, int listener, const struct sockaddr_in6 *address)
{
	int on = 1;

	connection->client = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connection->client < 0 ||
	    connect(connection->client, (const struct sockaddr *)address, sizeof(*address)) ||
	    setsockopt(connection->client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
		return -errno;
	connection->server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	return connection->server < 0 ? -errno : 0;
}

static int open_connections(struct connection *connections, uint64_t count)
{
	struct sockaddr_in6 address;
	int listener = open_listener(&address);
	int err = listener < 0 ? listener : 0;

	for (uint64_t i = 0; !err && i < count; i++)
		err = open_connection(&connections[i], listener, &address);
	if (listener >= 0)
		close(listener);
	if (err)
		complain("opening connections on loopback: %s: bring lo up (ip link set lo up), or allow "
			 "more open files (ulimit -n)",
			 strerror(-err));
	return err;
}

/* One round of a connection: sends single bytes, then reads all of them, so that buffers never fill. */
static int play_round(struct worker *worker, const struct connection *connection)
{
	char bytes[DRAIN_BYTES];
	ssize_t received;

	for (int i = 0; i < SENDS_A_ROUND; i++) {
		if (send(connection->client, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1)
			worker->sends++;
		else if (errno != EAGAIN)
			return -errno;
	}
	do {
		received = recv(connection->server, bytes, sizeof(bytes), MSG_DONTWAIT);
	} while (received == (ssize_t)sizeof(bytes));
	return received < 0 && errno != EAGAIN ? -errno : 0;
}

static void hold_rate(const struct worker *worker, uint64_t start_ns)
{
	uint64_t due_ns, now_ns;
	struct timespec pause;

	if (worker->sends_per_s <= 0)
		return;
	due_ns = start_ns + (uint64_t)((double)worker->sends * 1e9 / worker->sends_per_s);
	now_ns = mono_now_ns();
	if (due_ns < now_ns + 1000000) /* a sleep of less than 1 ms costs more than it gains */
		return;
	pause = (struct timespec){.tv_sec = (time_t)((due_ns - now_ns) / 1000000000),
				  .tv_nsec = (long)((due_ns - now_ns) % 1000000000)};
	nanosleep(&pause, NULL);
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	uint64_t start_ns = mono_now_ns();

	while (!worker->err && mono_now_ns() < worker->end_ns) {
		for (uint64_t i = 0; !worker->err && i < worker->count; i++) {
			worker->err = play_round(worker, &worker->connections[i]);
			hold_rate(worker, start_ns);
		}
	}
	return NULL;
}

static int run(struct connection *connections, uint64_t count, uint64_t threads, uint64_t seconds,
	       uint64_t rate)
{
	struct worker workers[MAX_THREADS] = {0};
	uint64_t start_ns = mono_now_ns(), sends = 0, started, first = 0;
	double elapsed_s;
	int err = 0;

	for (started = 0; !err && started < threads; started++) {
		uint64_t share = count / threads + (started < count % threads);

		workers[started] = (struct worker){.connections = connections + first,
						   .count = share,
						   .end_ns = start_ns + seconds * 1000000000,
						   .sends_per_s = (double)rate / (double)threads};
		first += share;
		err = -pthread_create(&workers[started].thread, NULL, work, &workers[started]);
	}
	if (err)
		started--;
	for (uint64_t i = 0; i < started; i++) {
		pthread_join(workers[i].thread, NULL);
		sends += workers[i].sends;
		err = err ? err : workers[i].err;
	}
	elapsed_s = (double)(mono_now_ns() - start_ns) / 1e9;
	if (err)
		complain("sending: %s", strerror(-err));
	else
		printf("{\"sends\":%" PRIu64 ",\"seconds\":%.3f,\"sends_per_s\":%.0f,\"connections\":%" PRIu64
		       ",\"threads\":%" PRIu64 "}\n",
		       sends, elapsed_s, (double)sends / elapsed_s, count, threads);
	return err;
}

int main(int argc, char **argv)
{
	static const struct option LONG[] = {
		{"seconds", required_argument, NULL, 's'},
		{"connections", required_argument, NULL, 'c'},
		{"threads", required_argument, NULL, 't'},
		{"rate", required_argument, NULL, 'r'},
		{NULL, 0, NULL, 0},
	};
	uint64_t seconds = 5, count = 8, threads = 2, rate = 0;
	struct connection *connections;
	int option, err = 0;

	while (!err && (option = getopt_long(argc, argv, "", LONG, NULL)) != -1) {
		if (option == 's')
			err = parse_number("--seconds", optarg, 1, 3600, &seconds);
		else if (option == 'c')
			err = parse_number("--connections", optarg, 1, MAX_CONNECTIONS, &count);
		else if (option == 't')
			err = parse_number("--threads", optarg, 1, MAX_THREADS, &threads);
		else if (option == 'r')
			err = parse_number("--rate", optarg, 0, 100000000, &rate);
		else
			err = -EINVAL;
	}
	if (err || optind < argc) {
		fprintf(stderr, "usage: tcp_event_generator [--seconds S] [--connections N] [--threads N] "
				"[--rate SENDS_A_SECOND]\n");
		return EXIT_REFUSED;
	}
	if (threads > count)
		threads = count;
	connections = calloc(count, sizeof(*connections));
	err = connections ? open_connections(connections, count) : -ENOMEM;
	if (!err)
		err = run(connections, count, threads, seconds, rate);
	free(connections);
	return err ? EXIT_INCOMPLETE : 0;
}
