/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Links that change during a run: a rate that follows a schedule (rate_schedule.c), and loss and jitter behind the queue
 * (impairment.c). A port without them has no struct dynamics and pays for one comparison.
 */
#ifndef SOFTSWITCH_DYNAMICS_H
#define SOFTSWITCH_DYNAMICS_H

#include "link.h"
#include "packet_pool.h"

enum {
	CORE_DYNAMIC_PORTS = 8,
	CORE_QUANTILES = 257,	  /* most points of a distribution of jitter */
	OPPORTUNITY_BYTES = 1500, /* of IP packets, as in Mahimahi */
};

/* Steps: from at_ns on the rate is `value` bit/s; 0 is an outage. Opportunities: at at_ns, packets of up to
 * value * OPPORTUNITY_BYTES leave.
 */
struct rate_entry {
	uint64_t at_ns; /* after the start of the schedule; rising */
	uint64_t value;
};

struct rate_schedule {
	struct rate_entry *entries;
	uint32_t count;
	bool opportunities;
	bool started;
	uint64_t start_ns; /* before it the port's own rate is in force */
};

/* A chance is a threshold for a random number of 64 bits. States are 0 (good) and 1 (bad). */
struct loss {
	uint64_t random;
	uint64_t seed;
	uint64_t lost[2];   /* the chance to lose a packet in a state */
	uint64_t leaves[2]; /* the chance to leave a state after a packet */
	uint8_t state;
	bool on;
};

/* The distribution function of the jitter is linear between quantiles at even probabilities. */
struct jitter {
	uint64_t random;
	uint64_t seed;
	uint32_t count; /* 0: no jitter */
	uint64_t quantiles_ns[CORE_QUANTILES];
	uint64_t exit_ns; /* when the previous packet left the delay line */
};

struct dynamics {
	struct rate_schedule schedule;
	struct loss loss;
	struct jitter jitter;
	uint64_t lost; /* packets that departed and were not delivered */
};

struct port;

/* Transmits permille / 1000 of the packet, as link_serve does. now_ns: the time of the event that starts it. */
bool rate_serve(const struct rate_schedule *schedule, const struct port *port,
		const struct core_packet *packet, uint64_t permille, uint64_t now_ns,
		struct link_clock *finish);

/* The time at which a departed packet leaves the port's delay line; without jitter at exit_ns. CORE_NEVER_NS: the link
 * loses the packet.
 */
uint64_t impair(struct dynamics *dynamics, uint64_t exit_ns);

#endif
