/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Mirror sessions and the copies that they send.
 */
#ifndef SOFTSWITCH_MIRROR_H
#define SOFTSWITCH_MIRROR_H

#include "packet_pool.h"

enum {
	CORE_MIRROR_SESSIONS = 64,
	/* A program that mirrors every mirror copy would never let virtual time go on. */
	CORE_MAX_GENERATIONS = 8,
};

struct mirror_session {
	bool set;
	uint32_t session;
	uint32_t truncate_bytes; /* UINT32_MAX: whole */
	uint16_t port;
};

struct mirror_session *mirror_find(struct core *core, uint32_t session);
struct mirror_session *mirror_add(struct core *core, uint32_t session); /* NULL: full */
/* The clone that the pipeline asked for, on its way to its port; NULL, counted, if it cannot be made. */
struct core_packet *mirror_clone(struct core *core, const struct core_packet *original,
				 enum instance_type kind);

#endif
