/* SPDX-License-Identifier: MIT
 * The host that traffic goes to, as the command line names it.
 */
#ifndef TRAFFIC_SERVER_H
#define TRAFFIC_SERVER_H

#include <sys/socket.h>

struct server {
	struct sockaddr_storage address; /* the port is each flow's own */
	const char *text;
};

/* An IPv4 or IPv6 address in numbers, into the struct server at to. 0, or -EINVAL after one line (lib/options.h). */
int read_server(void *to, const char *name, char *text);

#endif
