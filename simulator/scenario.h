/* SPDX-License-Identifier: MIT
 * The simulated experiment with one bottleneck queue, read from the command line and from standard input.
 */
#ifndef SIMULATOR_SCENARIO_H
#define SIMULATOR_SCENARIO_H

#ifdef __cplusplus
extern "C" {
#endif

#include <stdbool.h>
#include <stdint.h>

enum queue_mode { TAIL_DROP, ECN, EGRESS_THRESHOLD };
enum acks { DELAYED_ACKS, EACH_ACK };
enum pacing { NO_PACING, LINUX_PACING, EXACT_PACING };

/* A long flow, or a finite one. */
struct scenario_flow {
	const char *type; /* ns-3's name of its congestion control */
	uint16_t client_port;
	uint16_t server_port;
	uint64_t start_ns;	 /* after start_mono_ns, or after the end of the user's previous flow */
	uint64_t extra_delay_ns; /* of the flow's data, added to data_delay_ns */
	uint64_t bytes;		 /* to send; 0: a long flow */
	uint64_t user;		 /* the user that sends the flow; 0: none */
	uint64_t access_bps;	 /* of its access link; 0: none */
	uint32_t access_link;	 /* the shared link's number; 0: a link of the flow's own */
	uint32_t source;	 /* IPv4 in host order; 0: the sender's first address */
};

enum { MOST_ACCESS_LINKS = 1000 }; // as in experiments/spec/transfers.py

struct scenario {
	const char *sender, *receiver; /* IPv4 */
	uint64_t rate_bps;	       /* of the bottleneck */
	uint64_t data_delay_ns, ack_delay_ns;
	uint64_t mtu_bytes;
	unsigned int mode;	    /* enum queue_mode */
	uint64_t threshold_packets; /* depth from which packets are dropped (mode ECN: marked, if capable) */
	uint64_t limit_packets;	    /* the queue holds no more, whatever the mode */
	uint64_t start_mono_ns, duration_ns, drain_ns;
	uint64_t connect_interval_ns;
	uint64_t goodput_interval_ns;
	uint64_t initial_window; /* segments */
	unsigned int acks;	 /* enum acks */
	unsigned int no_sack;
	unsigned int pacing;	 /* enum pacing */
	uint64_t window_packets; /* most packets in a congestion window; 0: no bound */
	uint64_t socket_bytes; /* of each socket's buffer; 0: enough for every window that the queue allows */
	uint64_t seed;
	const char *directory; /* where the raw files go */
	struct scenario_flow *flows;
	uint32_t flow_count, long_count;
};

/* 0; 1 after --help; -EINVAL or -ENOMEM after one line on stderr. */
int scenario_read(struct scenario *scenario, int argc, char **argv);

#ifdef __cplusplus
}
#endif

#endif
