/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Ports: links, queue, arriving frames and outputs.
 */
#ifndef SOFTSWITCH_TRAFFIC_MANAGER_H
#define SOFTSWITCH_TRAFFIC_MANAGER_H

#include "event_heap.h"
#include "link.h"
#include "queue.h"

struct port_stats {
	uint64_t rx_frames;
	uint64_t rx_bytes;
	uint64_t oversize;
	uint64_t departed;
	uint64_t ingress_drops; /* of frames received here */
	uint64_t egress_drops;
};

struct port {
	bool attached;
	bool carries_data; /* a packet other than a clone has been queued here */
	uint8_t dynamics;  /* number of its struct dynamics, from 1; 0: none */
	uint8_t scheduler; /* number of its struct scheduler, from 1; 0: it has one queue; or OUTER_QUEUE */
	uint64_t rate_bps; /* 0: unlimited; access_bps likewise */
	uint64_t delay_ns;
	uint64_t access_bps;
	uint64_t drop_cost_permille; /* a packet that egress drops takes this share of its link time */

	struct queue queue; /* its head is in transmission; with a scheduler it only counts (scheduler.h) */
	struct link_clock link;
	struct link_clock head_finish; /* exact end of the head's transmission */
	struct link_clock access;

	struct lane arrivals; /* received here, by arrival time */
	struct lane outputs;  /* to be sent here, by due time */
	struct port_stats stats;
};
_Static_assert(!(sizeof(struct port) & (sizeof(struct port) - 1)), "a power of 2: a shift finds a port");

void traffic_enqueue(struct core *core, uint16_t port, struct core_packet *packet, uint64_t now_ns);
void traffic_depart(struct core *core);
/* Transmits a packet of an outer queue from now on: the link is free. */
void traffic_transmit(struct core *core, struct core_packet *packet, uint64_t now_ns);
/* Shows a frame to the tap. */
void traffic_tap(const struct core *core, const struct core_packet *packet, uint64_t now_ns);
/* Sends a finished frame out of packet->port, beside the port's queue. */
void traffic_output(struct core *core, struct core_packet *packet, uint64_t now_ns);

#endif
