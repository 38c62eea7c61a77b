/* SPDX-License-Identifier: MIT
 * Values of a command line: an IPv4 or IPv6 address with a port, and a whole number.
 */
#ifndef COLLECTOR_ADDRESS_H
#define COLLECTOR_ADDRESS_H

#include <netinet/in.h>
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

/* A whole number in [low, high] that is all of text, told about as address_parse does: 0, or -EINVAL after one
 * line. */
int number_parse(const char *option, const char *text, uint64_t low, uint64_t high, uint64_t *value);

#endif
