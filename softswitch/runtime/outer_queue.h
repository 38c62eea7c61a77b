/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * A port's queue outside of the core: in the driver, a Linux qdisc. The outer queue decides about order, drops and marks.
 * The core keeps the port's link, the length of the queue, and the packets themselves, so postcards, counters and delays
 * are those of any queue. The packet on the link counts in the length.
 */
#ifndef SOFTSWITCH_OUTER_QUEUE_H
#define SOFTSWITCH_OUTER_QUEUE_H

#include "core.h"

enum { OUTER_QUEUE = 255 }; /* struct port's scheduler */

/* `put` gives the queue a frame, and `next` the link. From inside of them, or at any other time, the queue calls
 * core_outer_send for the packet that takes the free link, and core_outer_drop for each packet that it drops.
 */
struct outer_queue {
	void (*put)(void *context, const struct core_output *frame); /* the body is now the queue's */
	void (*next)(void *context);
	void *context;
	const void *entering; /* the packet that is being put; NULL: none, or the queue has dropped it */
};

/* The port, attached before, has this queue from now on. At most one port may have one. */
void core_set_outer_queue(struct core *core, uint16_t port, const struct outer_queue *queue);

/* `packet` is core_output's. `copy` writes the frame as it left the queue; its length is unchanged. The body, if any, has
 * the whole frame, and is now the core's. now_ns: 0 from inside of `put` and `next`.
 */
void core_outer_send(struct core *core, void *packet, uint64_t now_ns, core_copy *copy, const void *source,
		     void *body);
void core_outer_drop(struct core *core, void *packet, uint64_t now_ns);

/* Of the traffic manager. */
struct port;
struct core_packet;
void outer_enqueue(struct core *core, struct port *port, uint16_t number, struct core_packet *packet);
void outer_depart(struct core *core, struct port *port, struct core_packet *packet);

#endif
