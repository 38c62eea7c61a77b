/* SPDX-License-Identifier: MIT
 * The flows of tcp_flows, one per line of its standard input:
 *   CONGESTION_CONTROL CLIENT_PORT SERVER_PORT OFFSET_NS BYTES USER [WORD...]
 * BYTES 0: a long flow. It connects before the common start and sends from OFFSET_NS after the start to the end. With
 * the word `late` it connects OFFSET_NS after the start, and sends at once.
 * Otherwise a finite flow, which connects, sends BYTES and closes. With USER 0 it connects OFFSET_NS after the start.
 * A user's finite flows follow each other in the order of their lines: the first connects OFFSET_NS after the start,
 * each later flow OFFSET_NS after the end of the previous flow.
 * Words, in any order:
 *   from=ADDRESS  the client's IPv4 or IPv6 address, which selects the flow's path at the switch; without this word the
 *                 kernel chooses the address
 *   window=N      most segments in flight, whatever the congestion control; needs the traffic device (pump.h)
 *   buffer=N      bytes of the send buffer; without this word the host's settings bound the buffer
 *   pacing        segments are spread over the round trip
 *   stop=N        N ns after the start a long flow stops sending, and its connection is aborted after the drain; a
 *                 finite flow that would begin then or later does not begin
 *   ecn           a connection without ECN is a failure. If only some flows have this word, only their SYNs ask for
 *                 ECN. Otherwise the host's setting decides
 * The caller has checked the plan as a whole; a malformed line is still reported with its number.
 */
#ifndef TRAFFIC_FLOW_LIST_H
#define TRAFFIC_FLOW_LIST_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
	MOST_FLOWS = 1 << 22,	       /* of tcp_flows or traffic_sink: bounds its memory to 1.2 GiB */
	MOST_CONGESTION_CONTROLS = 64, /* of one run */
	MOST_SOURCES = 1024,	       /* client addresses of one run */
	MOST_WINDOW_SEGMENTS = 1000000,
	CC_NAME_BYTES = 16, /* TCP_CA_NAME_MAX, net/tcp.h */
};

enum flow_state {
	FLOW_NONE, /* no socket */
	FLOW_CONNECTING,
	FLOW_CONNECTED, /* long flows: nothing sent */
	FLOW_SENDING,
	FLOW_CLOSING, /* finite flows: written with the FIN, or handed to the device; the FIN is not acknowledged */
	FLOW_STOPPED, /* nothing more is written to it */
	FLOW_ENDED,   /* a finite flow whose socket is closed */
};

struct flow {
	const char *cc;
	uint64_t offset_ns;
	uint64_t stop_ns; /* from the start; 0: none */
	uint64_t bytes;
	const struct sockaddr_storage *source; /* without a port; NULL: the kernel chooses */
	struct flow *next;		       /* the same user's next flow */
	bool follows;			       /* waits for an earlier flow of the same user */
	uint32_t user;
	uint32_t window_segments; /* 0: no bound */
	uint32_t buffer_bytes;	  /* 0: as the host is set */
	uint16_t client_port;
	uint16_t server_port;
	bool pacing;
	bool ecn;
	bool late; /* a long flow that connects after the start */

	enum flow_state state;
	int fd;
	uint64_t syn_mono_ns; /* read before connect; a time is 0 if its event did not occur */
	uint64_t connected_mono_ns;
	uint64_t started_mono_ns; /* read after the first write or pump_send */
	uint64_t ended_mono_ns; /* a finite flow: the ACK of its FIN, or its failure; a long flow: its stop */
	uint64_t bytes_written;
	uint64_t bytes_acked;
	uint64_t retransmits; /* segments */
	char *error;	      /* of the first failure; NULL: none */
};

struct flow_list {
	struct flow *flows; /* in the order of the lines */
	uint32_t count;
	struct flow **long_flows; /* late flows last; sorted by offset, then by client port */
	uint32_t long_count;
	uint32_t early_count;				   /* long flows that connect before the start */
	struct sockaddr_storage sources[2 * MOST_SOURCES]; /* a hash table; family 0: free */
	uint32_t source_count;
	char ccs[MOST_CONGESTION_CONTROLS][CC_NAME_BYTES];
	uint32_t with_ecn; /* number of flows */
	bool with_window;  /* whether any flow has a window=N */
};

/* Reads all flows of file. 0, or -errno after one message and with nothing left to free. */
int flow_list_read(FILE *file, struct flow_list *list);
void flow_list_free(struct flow_list *list);

static inline bool flow_is_finite(const struct flow *flow)
{
	return flow->bytes > 0;
}

#endif
