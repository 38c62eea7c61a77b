/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Multicast groups: the ports to which a packet is copied.
 */
#ifndef SOFTSWITCH_MULTICAST_H
#define SOFTSWITCH_MULTICAST_H

#include "packet_pool.h"
#include "text.h"

enum {
	CORE_MULTICAST_GROUPS = 64,
	CORE_GROUP_COPIES = 64,
	CORE_MAX_GROUP = 65535,
};

struct multicast_group {
	uint16_t number; /* 0: unused */
	uint16_t count;
	struct multicast_copy {
		uint16_t port;
		uint16_t replica; /* egress sees it as egress_rid */
	} copies[CORE_GROUP_COPIES];
};

/* Queues a copy of the packet, as ingress or mirror_clone left it, for each port of the group, in the group's order.
 * Counts a packet for a group without ports. The original is still the caller's; it has the egress_rid of the last
 * copy, as in simple_switch.
 */
void multicast_send(struct core *core, struct core_packet *original, uint16_t group, uint64_t now_ns);

/* Answers "multicast set GROUP PORT RID [PORT RID]...", "multicast show GROUP" and "multicast delete GROUP". */
size_t multicast_control(struct core *core, struct words *words, struct text *text);

#endif
