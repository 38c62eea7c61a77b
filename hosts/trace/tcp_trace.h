/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The counters that the BPF programs and their loader share. The record is in wire/tcp_record.h.
 */
#ifndef TCP_TRACE_H
#define TCP_TRACE_H

#ifdef __bpf__
#define TRACE_U64 __u64
#else
#include <stdint.h>
#define TRACE_U64 uint64_t
#endif

/* One per CPU, written by that CPU only and mapped by the loader; 64 bytes, so that CPUs share no cache line.
 * Programs interrupt each other, so they add atomically. Once no program runs, probe_events + retransmit_events
 * = records in that CPU's ring + lost.
 */
struct cpu_counters {
	TRACE_U64 probe_events;	       /* of the selected sockets */
	TRACE_U64 retransmit_events;   /* of the selected sockets, without failed retransmissions */
	TRACE_U64 lost;		       /* of both kinds: the ring was full, or there is no ring */
	TRACE_U64 retransmit_failures; /* the kernel could not send the segment again: nothing is recorded */
	TRACE_U64 other_sockets;       /* events that the filter left out */
	TRACE_U64 rescued;	       /* events of any socket that only the second program saw */
	TRACE_U64 unused[2];
};

_Static_assert(sizeof(struct cpu_counters) == 64, "one cache line per CPU");

#undef TRACE_U64

#endif
