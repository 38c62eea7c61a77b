/* SPDX-License-Identifier: MIT
 * Draws the packets of open-loop traffic one by one: time, size and flow. The same seed and options give the same
 * packets. Times, sizes and flows have separate random streams. So with Poisson and CBR arrivals the number of flows
 * does not change times and sizes. No I/O.
 *
 * Sizes are of IP packets, from LEAST_IP_BYTES to the MTU:
 *   fixed        all have the MTU
 *   bimodal      LEAST_IP_BYTES or the MTU, each with probability 1/2
 *   bursts       all have the MTU, and packets arrive in slow-start bursts, see below
 *   exponential  LEAST_IP_BYTES + k; k is the integer part of an exponential of mean MTU / 4, truncated to below
 *                MTU - LEAST_IP_BYTES + 1: P(k) is proportional to exp(-4 k / MTU), for k = 0 .. MTU - LEAST_IP_BYTES
 * Bursts: a flow of l packets in slow start sends bursts of 2, 4, 8, ... packets, and then the rest (Appenzeller et al.
 * 2004, section 4). Each burst is an arrival of its own, independent of other bursts. All packets of a burst have the
 * same time and the same flow. The size of a burst is drawn from the bursts of a flow of options.flow_packets packets,
 * each with the same probability. Without bursts an arrival is one packet.
 * A packet takes (size + ETHERNET_BYTES + WIRE_EXTRA_BYTES) bytes on the wire (lib/frames.h). The mean gap between
 * arrivals is an arrival's mean wire bits / (load x rate).
 * Poisson: gaps are exponential. Their sum keeps fractions of a ns, and each time is rounded down. The flow of an
 * arrival is drawn uniformly, so each flow is Poisson as well.
 * CBR: all gaps are the mean, and flows take turns.
 * Periodic (Enachescu et al. 2006, Appendix II): each flow sends round_packets packets in a round, spacing_ns apart.
 * A round lasts flows x round_packets mean gaps. The default spacing is the widest: a flow's packets are spaced evenly.
 * A flow's first packet of a round is due at a random phase. The phase is uniform over the round, so that, after the
 * first round, the mean number of due packets is the same at each time. With even spacing the phase is uniform over one
 * spacing.
 * Periodic flows keep their phase in all rounds. Jittered flows change it: with even spacing, each round draws a new
 * phase. Otherwise the phase moves from round to round by up to half a round either way, but never so far that two
 * rounds of a flow are closer to each other than the flow's spacing.
 * Recorded packets are not drawn: recorded.h reads them.
 */
#ifndef TRAFFIC_SCHEDULE_H
#define TRAFFIC_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

enum arrivals { ARRIVALS_POISSON, ARRIVALS_CBR, ARRIVALS_PERIODIC, ARRIVALS_JITTERED, ARRIVALS_RECORDED };
enum sizes { SIZES_FIXED, SIZES_EXPONENTIAL, SIZES_BIMODAL, SIZES_BURSTS };

enum {
	FIRST_BURST = 2, /* packets */
	MOST_FLOW_PACKETS = 1000,
	MOST_ROUND_PACKETS = 1000000,
};

struct schedule_options {
	enum arrivals arrivals;
	enum sizes sizes;
	uint64_t seed;
	uint64_t rate_bps;
	uint64_t load_ppm; /* share of the rate, millionths */
	uint64_t mtu_bytes;
	uint64_t flows;
	uint64_t flow_packets;	/* with SIZES_BURSTS: packets of the flows that send the bursts */
	uint64_t round_packets; /* periodic and jittered: packets of a flow in a round; 0 means 1 */
	uint64_t
		spacing_ppm; /* periodic and jittered: millionths of the time of a packet on the link; 0: even */
};

struct chance {
	uint64_t state[4];
};

struct departure {
	uint64_t due_ns; /* from the start */
	uint32_t ip_bytes;
	uint32_t flow; /* from 0 */
	uint8_t ecn;   /* field of the IP header */
};

/* The next packet of a flow of periodic traffic. */
struct periodic_flow {
	double phase_ns, round_start_ns, due_ns;
	uint64_t sent; /* in this round */
	uint32_t flow;
};

struct schedule {
	struct schedule_options options;
	double mean_gap_ns;
	double gap_sum_ns;
	double below;	   /* exponential: probability that an untruncated size fits */
	uint64_t count;	   /* packets */
	uint64_t arrivals; /* packets or bursts */
	struct chance times, lengths, flows;
	struct departure latest;
	uint32_t left;		    /* packets of the latest burst that are still to come */
	struct periodic_flow *heap; /* periodic and jittered: min-heap by due time, then flow */
	double round_ns, spacing_ns, even_ns;
	uint64_t round_packets;
};

/* 0, -ENOMEM, or -EINVAL if a round is too short for the packets with their spacing. */
int schedule_init(struct schedule *schedule, const struct schedule_options *options);
void schedule_destroy(struct schedule *schedule);

/* The next packet. Times never decrease, and the schedule never ends. */
struct departure schedule_next(struct schedule *schedule);

#endif
