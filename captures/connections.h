/* SPDX-License-Identifier: MIT
 * The connections of a capture, each measured while its packets pass: RTTs, retransmissions, pauses of the application,
 * and what limits the rate. The memory is that of the open connections.
 */
#ifndef CAPTURES_CONNECTIONS_H
#define CAPTURES_CONNECTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/captured_packet.h"
#include "wire/connection.h"

enum { WAYS = 2 }; /* of the link: forward, back */

struct connections;

struct connections_settings {
	uint64_t rate_bps;  /* of the link */
	uint32_t mtu_bytes; /* of an IP packet on the link: longer ones are of GRO or TSO */
	uint32_t most_open;
	void (*write)(void *to,
		      const struct connection *row); /* a connection that ended, or that is forgotten */
	void *to;
};

/* NULL: no memory. */
struct connections *connections_new(const struct connections_settings *settings);

/* An IP packet, in the order of time. `packet_type` has its way on the link: 0 forward, 1 back; others count for none.
 * Returns 0 or -ENOMEM.
 */
int connections_add(struct connections *all, const struct captured_packet *packet);

/* Writes all connections that are open. */
void connections_end(struct connections *all);

void connections_free(struct connections *all);

#endif
