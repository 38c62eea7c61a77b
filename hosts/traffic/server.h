/* SPDX-License-Identifier: MIT
 * The receiving host, as given on the command line.
 */
#ifndef TRAFFIC_SERVER_H
#define TRAFFIC_SERVER_H

#include <stdint.h>
#include <sys/socket.h>

struct server {
	struct sockaddr_storage address; /* without a port: each flow has its own port */
	const char *text;
};

/* Reads a numeric IPv4 or IPv6 address into *to, a struct server. Returns 0, or -EINVAL after one message
 * (lib/options.h).
 */
int read_server(void *to, const char *name, char *text);

/* Sets the port of an IPv4 or IPv6 address, and returns the address's length. */
socklen_t set_port(struct sockaddr_storage *address, uint16_t port);

#endif
