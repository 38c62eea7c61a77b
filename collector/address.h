/* SPDX-License-Identifier: MIT
 * A value of a command line: an IPv4 or IPv6 address with a port.
 */
#ifndef COLLECTOR_ADDRESS_H
#define COLLECTOR_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct address {
	struct sockaddr_storage storage; /* AF_UNSPEC with a port: all addresses of IPv6 and IPv4 */
	socklen_t length;
	char text[80];
};

/* "[ADDRESS]:PORT": "10.0.0.1:5577", "[fd00::1]:5577", or ":5577". Numeric only. 0, or -EINVAL after one
 * line. */
int address_parse(const char *option, const char *text, struct address *address);

/* The same, as a row of lib/options.h calls it; to is a struct address. */
int address_read(void *to, const char *name, char *text);

/* "ADDRESS" alone, "10.0.0.1" or "[fd00::1]", as a row of lib/options.h calls it; to is a struct address, zero
 * before the first call. Refuses a second address, and one that no host sends from. */
int address_read_host(void *to, const char *name, char *text);

/* Whether a socket that is bound to listening can receive from this sender: the address families agree. */
bool address_can_reach(const struct sockaddr_storage *from, const struct sockaddr_storage *listening);

/* Whether both are the same host, whatever their ports; IPv4 also as it comes to a socket of IPv6. */
bool address_same_host(const struct sockaddr_storage *one, const struct sockaddr_storage *other);

#endif
