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
	uint16_t port;
};

struct mirror_session *mirror_find(struct core *core, uint32_t session);
struct mirror_session *mirror_add(struct core *core, uint32_t session); /* NULL: no free session */
/* Makes the clone that the pipeline requested; its egress_spec is the session's port. Returns NULL, and counts the
 * missing clone, if there is no such session, no free packet, or too many generations of clones.
 */
struct core_packet *mirror_clone(struct core *core, const struct core_packet *original,
				 enum instance_type kind);

#endif
