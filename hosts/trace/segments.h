/* SPDX-License-Identifier: MIT
 * How many segments there were to be traced, by the count of the kernel's TCP: no tracer can know what it was not told.
 */
#ifndef TRACE_SEGMENTS_H
#define TRACE_SEGMENTS_H

#include <stdint.h>
#include <stdio.h>

/* Of all sockets of a network namespace; two that were made one while the socket was busy are one. Handshakes and closing are in them, which have no events. */
struct segments {
	uint64_t received, resent;
};

struct segment_counter {
	FILE *snmp, *netstat; /* its files in /proc/net */
	struct segments before;
};

/* Counts from now on in the namespace at path; later no privilege is needed. 0 or -errno after one line. */
int segments_open(struct segment_counter *counter, const char *netns_path);
struct segments segments_since(const struct segment_counter *counter);
void segments_close(struct segment_counter *counter);

#endif
