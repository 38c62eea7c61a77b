/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Ports: their links, their queue, and the frames on the way in and out.
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
	uint64_t ingress_drops; /* of frames that came in here */
	uint64_t egress_drops;
};

struct port {
	bool attached;
	bool carries_data; /* a packet that is no clone has been queued here */
	uint64_t rate_bps; /* 0: without bound; also below */
	uint64_t delay_ns;
	uint64_t access_bps;

	struct queue queue; /* the packet that leaves next is in transmission */
	struct link_clock link;
	struct link_clock head_finish; /* of that packet: exact end of its transmission */
	struct link_clock access;

	struct lane arrivals; /* frames that came in here, by arrival */
	struct lane outputs;  /* frames to go out here, by due time */
	struct port_stats stats;
};

void traffic_enqueue(struct core *core, uint16_t port, struct core_packet *packet, uint64_t now_ns);
void traffic_depart(struct core *core);

#endif
