/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Mirror sessions and their clones.
 */
#ifndef SOFTSWITCH_MIRROR_H
#define SOFTSWITCH_MIRROR_H

#include "packet_pool.h"

enum {
	CORE_MIRROR_SESSIONS = 64,
	/* Stops a program that clones every clone. To a mirror port without a rate, all clones of a packet would depart
	 * at the same ns: without the limit virtual time would never advance. */
	CORE_MAX_GENERATIONS = 8,
};

struct mirror_session {
	bool set;
	uint32_t session;
	uint32_t truncate_bytes; /* UINT32_MAX: no truncation */
	uint16_t port;		 /* PIPELINE_DROP_PORT: to the group only */
	uint16_t group;		 /* multicast group to which clones go, too; 0: none */
};

struct mirror_session *mirror_find(struct core *core, uint32_t session);
struct mirror_session *mirror_add(struct core *core, uint32_t session); /* NULL: no free session */
/* Copies bytes of the packet's frame, from offset on, wherever they are. */
void mirror_read_frame(const struct core *core, uint8_t *to, const struct core_packet *original,
		       uint32_t offset, uint32_t bytes);

/* Makes the clone that the pipeline requested, for mirror_send. Returns NULL, and counts the missing clone, if there is
 * no such session, no free packet, or too many generations of clones.
 */
struct core_packet *mirror_clone(struct core *core, const struct core_packet *original,
				 enum instance_type kind);
/* Queues the clone at its session's port, and copies of it at the ports of the session's group. */
void mirror_send(struct core *core, struct core_packet *clone, uint64_t now_ns);

#endif
