/* SPDX-License-Identifier: MIT
 * Losses of datagrams in the kernel: counters of this network namespace (backlog: of the whole host), read before and
 * after a run. The counters include other traffic, so they can explain a gap but do not prove that a postcard was lost.
 */
#ifndef COLLECTOR_LOSSES_H
#define COLLECTOR_LOSSES_H

#include <stdint.h>

struct losses {
	uint64_t udp_receive_buffer; /* a socket's buffer was full (all UDP sockets, IPv4 and IPv6) */
	uint64_t udp_checksum;
	uint64_t interface; /* receive drops of all interfaces */
	uint64_t
		backlog; /* per-CPU queues behind veth and loopback (net.core.netdev_max_backlog), whole host */
};

/* A counter that this kernel does not have is 0. */
void losses_read(struct losses *losses);

struct losses losses_since(const struct losses *before);

#endif
