/* SPDX-License-Identifier: MIT
 * A value of a command line: an IPv4 or IPv6 address, with or without a port.
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

/* A reader of lib/options.h for "[ADDRESS]:PORT": "10.0.0.1:5577", "[fd00::1]:5577", or ":5577". Numeric only. to: a
 * struct address. Returns 0, or -EINVAL after one line.
 */
int address_read(void *to, const char *name, char *text);

/* A reader of lib/options.h for "ADDRESS" without a port: "10.0.0.1" or "[fd00::1]". to: a struct address, zero before
 * the first call. Refuses a second address, and addresses from which no host sends.
 */
int address_read_host(void *to, const char *name, char *text);

/* Whether a socket that is bound to `listening` can receive from the sender `from`: the address families agree. */
bool address_can_reach(const struct sockaddr_storage *from, const struct sockaddr_storage *listening);

/* Whether both addresses are equal, ignoring ports. An IPv4 address equals its IPv4-mapped IPv6 address. */
bool address_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b);

#endif
