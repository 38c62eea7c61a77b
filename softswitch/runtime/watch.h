/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Postcards that the core makes itself: of every packet at one port's queue, whatever the P4 program does. Our own program
 * makes its postcards in P4; this is for programs that know nothing of them.
 *
 * A packet from the sender's port that does not reach the queue was dropped at its arrival: by ingress, by a limit of the
 * queue, or because it left through another port. A packet that left the queue and not the port was dropped at its
 * departure. A packet that leaves with CE and came without was marked here. The addresses are those with which the packet
 * came; a clone, a further copy, and a stay in the queue that a recirculated packet repeats have none.
 */
#ifndef SOFTSWITCH_WATCH_H
#define SOFTSWITCH_WATCH_H

#include "../../wire/postcard.h"
#include "packet_pool.h"
#include "text.h"

enum { WATCH_HEADER_BYTES = 42 }; /* Ethernet, IPv4, UDP: before each postcard */

/* What the core knows of a watched packet. */
enum watch_state {
	WATCH_NONE,   /* nobody watches */
	WATCH_OTHER,  /* not from the sender: counts if it reaches the queue */
	WATCH_SENT,   /* from the sender, and in no queue yet */
	WATCH_QUEUED, /* the queue has the packet, or refuses it now */
	WATCH_LEFT,   /* it left the queue at this moment */
	WATCH_AROUND, /* it left the queue, and egress recirculated it */
};

struct watched_packet {
	struct postcard card;
	bool came_with_ce;
};

struct watch_count {
	uint64_t packets;
	uint64_t bytes;
};

/* In force if core->watching. */
struct watch {
	uint16_t port; /* of the queue */
	uint16_t sender;
	uint16_t collector; /* postcards leave here, beside the port's queue */
	uint16_t switch_id;
	uint8_t headers[WATCH_HEADER_BYTES];
	uint32_t next_seq[2]; /* of postcards with POSTCARD_AT_INGRESS; of the others */
	struct watch_count arrivals, arrival_drops, departure_drops, marks;
	uint64_t postcards;
	struct watched_packet *packets; /* of each packet of the pool, by its number */
};

/* Each function below does nothing but bookkeeping: the packet stays as it is. Callers test packet->watched first. */
void watch_arrived(struct core *core, struct core_packet *packet);
void watch_queued(struct core *core, uint16_t port, struct core_packet *packet, uint64_t now_ns);
void watch_left(struct core *core, struct core_packet *packet, uint64_t now_ns);
/* After the deparser: the packet is on its way. */
void watch_departed(struct core *core, struct core_packet *packet);
void watch_recirculated(struct core_packet *packet);
/* The packet is gone: packet_pool_put calls this last. */
void watch_ended(struct core *core, struct core_packet *packet);
/* A multicast copy for `port`: the first for the watched queue stands for the packet itself. */
void watch_copied(struct core *core, struct core_packet *original, struct core_packet *copy, uint16_t port);
void watch_cloned(struct core *core, const struct core_packet *original, struct core_packet *clone);

/* Answers "watch set ...", "watch show" and "watch clear". */
size_t watch_control(struct core *core, struct words *words, struct text *text);

#endif
