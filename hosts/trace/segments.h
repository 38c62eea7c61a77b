/* SPDX-License-Identifier: MIT
 * Counts a namespace's segments by the kernel's TCP counters: a check from outside, because a tracer cannot count
 * events that never reached it.
 */
#ifndef TRACE_SEGMENTS_H
#define TRACE_SEGMENTS_H

#include <stdint.h>
#include <stdio.h>

/* Segments of all sockets of a network namespace, including those that cause no event: segments received in other
 * states than ESTABLISHED (handshakes, closing), and SYN-ACKs sent again. Segments coalesced in a socket's backlog
 * count once.
 */
struct segments {
	uint64_t received, resent;
};

struct segment_counter {
	FILE *snmp, *netstat; /* the namespace's files in /proc/net */
	struct segments before;
};

/* Starts counting in the namespace at path. Later calls need no privileges. 0 or -errno after one message. */
int segments_open(struct segment_counter *counter, const char *netns_path);
struct segments segments_since(const struct segment_counter *counter);
void segments_close(struct segment_counter *counter);

#endif
