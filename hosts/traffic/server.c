// SPDX-License-Identifier: MIT
// Numeric addresses only: a measurement must not wait for a name service.
#include "server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "../../lib/report.h"

int read_server(void *to, const char *name, char *text)
{
	struct server *server = to;
	struct sockaddr_in *ipv4 = (struct sockaddr_in *)&server->address;
	struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)&server->address;
	bool colons = strchr(text, ':');

	server->text = text;
	server->address.ss_family = colons ? AF_INET6 : AF_INET;
	if (inet_pton(server->address.ss_family, text,
		      colons ? (void *)&ipv6->sin6_addr : (void *)&ipv4->sin_addr) == 1)
		return 0;
	complain("%s '%s': give an IPv4 or IPv6 address in numbers", name, text);
	return -EINVAL;
}

socklen_t set_port(struct sockaddr_storage *address, uint16_t port)
{
	if (address->ss_family == AF_INET6) {
		((struct sockaddr_in6 *)address)->sin6_port = htons(port);
		return sizeof(struct sockaddr_in6);
	}
	((struct sockaddr_in *)address)->sin_port = htons(port);
	return sizeof(struct sockaddr_in);
}
