/* SPDX-License-Identifier: MIT
 * What passes of one connection, measured: round trips, retransmissions, pauses, and what limits each round trip.
 */
#ifndef CAPTURES_MEASURE_H
#define CAPTURES_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "connections.h"
#include "quantile.h"

enum {
	TCP_FIN = 0x01,
	TCP_SYN = 0x02,
	TCP_RST = 0x04,
	TCP_ACK = 0x10,
	PROTOCOL_TCP = 6,
	RATE_GAPS = 5, /* packets that the access rate is measured over */
	STAMPS = 16,   /* TCP timestamps, and ACKs, that are remembered */
};

struct stamp {
	int64_t ns;
	uint32_t value;
	bool is_used;
};

struct round {
	int64_t start_ns;
	uint64_t bytes;	     /* on the link, behind its first packet */
	uint64_t link_bytes; /* that the link had carried at its start */
	uint32_t segments, short_segments, in_flight;
	bool met_window, has_loss;
};

/* What one side sends. Its ACKs belong to the other's half. */
struct half {
	uint64_t packets, ip_bytes, payload_bytes, unseen_bytes;
	uint32_t retransmissions, reordered, pauses, mss_bytes;
	uint32_t next, acked, in_flight;
	uint16_t next_id; /* IP id of the packet that has the highest bytes */
	uint8_t scale, way;
	bool begun, has_ack, has_syn, has_end,
		is_waiting;			  /* is_waiting: all is acknowledged since all_acked_ns */
	uint64_t window_bytes, most_window_bytes; /* that this side advertises */
	int64_t first_ns, last_ns, all_acked_ns, hole_ns; /* of data */
	int64_t pause_ns;
	struct stamp stamps[STAMPS], acks[STAMPS];
	uint8_t stamp, ack;   /* the next of each to be written */
	uint32_t newest;      /* the highest timestamp */
	int64_t least_ns;     /* from a segment of this side to its echo; 0: unknown */
	struct median median; /* of these times */
	struct {
		int64_t ns;
		uint64_t bytes;
	} recent[RATE_GAPS]; /* the last data packets */
	uint64_t link_bytes; /* of all data */
	double access_bps, link_peak;
	struct round round;
	uint32_t flat, flat_bytes;
	bool recovers;
	uint64_t limited_ns[6];
};

enum limits { APPLICATION, WINDOW, ACCESS, LINK, ELSEWHERE, START_UP };

struct measured {
	uint64_t addr[2][2]; /* of the initiator and its peer: high, low */
	uint16_t port[2];
	uint8_t protocol;
	int64_t start_ns, last_ns, handshake_ns, syn_ns;
	uint32_t syn_seq;
	bool syn_again, has_answer;
	struct half half[2];
};

/* What measuring needs of the captured link: its rate, the time of the packet that passes, and the bytes so far. */
struct link {
	uint64_t rate_bps, bytes[WAYS + 1];
	int64_t now_ns;
};

/* The bytes of IP packets with all that the link carries for them. */
uint64_t measure_bytes_on_link(uint64_t ip_bytes, uint64_t packets);

/* A TCP segment of one side: as many packets on the link. Returns whether the connection has ended. */
bool measure_segment(const struct link *link, struct measured *one, int side,
		     const struct captured_packet *packet, uint64_t packets);

/* All that was measured. */
struct connection measure_row(const struct link *link, struct measured *one, bool is_forgotten);

#endif
