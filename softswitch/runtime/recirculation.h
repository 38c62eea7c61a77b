/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Packets that pass the pipeline again: after ingress (resubmitted) or after egress (recirculated).
 */
#ifndef SOFTSWITCH_RECIRCULATION_H
#define SOFTSWITCH_RECIRCULATION_H

#include "link.h"
#include "packet_pool.h"
#include "text.h"

enum {
	/* A program can send a packet around for ever. Without a rate all passes are at the same ns: without the limit
	 * virtual time would never advance. A clone has made as many passes as its original. */
	CORE_MAX_PASSES = 32,
};

/* One link for the recirculated packets of all ports. */
struct recirculation {
	uint64_t rate_bps; /* 0: unlimited */
	uint64_t delay_ns;
	struct link_clock link;
	uint64_t packets; /* recirculated or resubmitted */
	uint64_t drops;	  /* CORE_MAX_PASSES reached, or the frame had become too long */
};

/* Counts one more pass. False: it is one too many, and the packet is dropped. */
bool recirculation_passes_again(struct core *core, struct core_packet *packet);

/* Sends a deparsed packet over the recirculation link to ingress. */
void recirculation_send(struct core *core, struct core_packet *packet, uint64_t now_ns);

/* Answers "recirculation set [rate BPS] [delay NS]" and "recirculation show". */
size_t recirculation_control(struct core *core, struct words *words, struct text *text);

#endif
