/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * What the files of the core share. A packet is in one place at a time: the free list, the arrivals, a port's
 * queue, or the outputs; `next` chains it there.
 */
#ifndef SOFTSWITCH_CORE_INTERNAL_H
#define SOFTSWITCH_CORE_INTERNAL_H

#include "core.h"

#ifndef likely
#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#endif

/* The four that a freestanding compiler may call by itself: whoever embeds the core provides them. */
void *memcpy(void *to, const void *from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int value, size_t bytes);
int memcmp(const void *a, const void *b, size_t bytes);

enum {
	CORE_EINVAL = 22,
	CORE_ENODEV = 19,
	CORE_EMSGSIZE = 90,
	CORE_ENOBUFS = 105,
	CORE_MIRROR_SESSIONS = 64,
	/* A program that mirrors every mirror copy would never let virtual time go on. */
	CORE_MAX_GENERATIONS = 8,
};

#define CORE_TIME_MASK (((uint64_t)1 << 48) - 1)

struct core_packet {
	struct packet packet;
	struct core_packet *next;
	uint8_t *buffer;  /* PIPELINE_HEADROOM before the frame as it came in */
	uint64_t time_ns; /* of its next event: arrival, departure, or due */
	uint64_t seq;	  /* order of events at the same ns */
	uint64_t enqueue_ns;
	uint64_t departure_ns;
	uint64_t flow_delay_ns; /* of its 5-tuple, when it arrived */
	uint32_t queue_bytes;	/* as counted in the queue and on the link */
	uint16_t port;		/* that of the queue or output it is in */
	uint8_t generation;	/* 0: came in by a port; clones have one more than their original */
	bool in_lane;
	bool back_to_back;
};

/* When a link of a rate is free again: exactly free_ns + carry / rate_bps ns. */
struct link_clock {
	uint64_t free_ns;
	uint64_t carry; /* in ns / rate_bps: less than rate_bps */
};

/* Events in the order of (time_ns, seq). Packets of one lane that come in order wait in a chain, of which
 * only the first is in the heap; others enter the heap at once. So the heap is as small as the number of busy
 * lanes.
 */
struct event_heap {
	struct heap_entry {
		uint64_t time_ns;
		uint64_t seq;
		struct core_packet *packet;
	} *entries;
	uint32_t count;
};

struct lane {
	struct core_packet *head;
	struct core_packet *tail;
};

struct port_stats {
	uint64_t rx_frames;
	uint64_t rx_bytes;
	uint64_t oversize;
	uint64_t queue_drops;
	uint64_t departed;
	uint64_t ingress_drops; /* of frames that came in here */
	uint64_t egress_drops;
	uint64_t queue_max_packets;
};

struct port {
	bool attached;
	bool carries_data; /* a packet that is no clone has been queued here */
	uint64_t rate_bps; /* 0: without bound; also below */
	uint64_t delay_ns;
	uint64_t access_bps;
	uint64_t limit_packets;
	uint64_t limit_bytes;

	struct core_packet *head; /* the queue; its head is in transmission */
	struct core_packet *tail;
	uint32_t queue_packets;
	uint64_t queue_bytes;
	struct link_clock link;
	struct link_clock head_finish; /* of the head: exact end of its transmission */
	struct link_clock access;

	struct lane arrivals; /* frames that came in here, by arrival */
	struct lane outputs;  /* frames to go out here, by due time */
	struct port_stats stats;
};

struct mirror_session {
	bool set;
	uint32_t session;
	uint32_t truncate_bytes; /* UINT32_MAX: whole */
	uint16_t port;
};

enum {
	PROTOCOL_TCP = 6,
	PROTOCOL_UDP = 17,
	FLOW_ADDRESS_BYTES = 16, /* IPv6, or IPv4-mapped */
};

struct flow_key {
	uint8_t src_addr[FLOW_ADDRESS_BYTES];
	uint8_t dst_addr[FLOW_ADDRESS_BYTES];
	uint8_t src_port[2]; /* big-endian, as in the packet */
	uint8_t dst_port[2];
	uint8_t protocol;
	uint8_t zero[3];
};

struct flow {
	struct flow_key key;
	bool set;
	uint64_t delay_ns;
	uint64_t access_bps;
	struct link_clock access;
};

struct flow_table {
	struct flow *slots; /* open addressing, a power of two, at most half full */
	uint32_t mask;
	uint32_t count;
	uint32_t limit;
};

struct core_stats {
	uint64_t pool_exhausted;
	uint64_t arrivals_clamped;
	uint64_t clones;
	uint64_t clone_drops; /* no such mirror session, or a clone of a clone of a clone... */
	uint64_t multicast_drops;
	uint64_t port_unknown_drops;
	uint64_t packets_used_max;
};

struct core {
	struct pipeline *pipeline;
	uint64_t now_ns; /* time of the last event done */
	uint64_t next_seq;
	uint64_t lookahead_ns;
	struct event_heap arrivals;
	struct event_heap departures; /* the heads of all queues */
	struct event_heap outputs;

	struct core_packet *free_packets;
	uint32_t packets_used;
	struct core_config config;

	struct flow_table flows;
	struct mirror_session mirrors[CORE_MIRROR_SESSIONS];
	struct core_stats stats;
	struct port ports[PIPELINE_PORTS];
};

/* packet_pool.c */
size_t packet_pool_bytes(const struct core_config *config);
void packet_pool_init(struct core *core, uint8_t *memory);
struct core_packet *packet_pool_get(struct core *core); /* NULL, counted: none left */
void packet_pool_put(struct core *core, struct core_packet *packet);

/* event_heap.c; the keys are packet->time_ns and packet->seq */
void heap_push(struct event_heap *heap, struct core_packet *packet);
struct core_packet *heap_pop(struct event_heap *heap);
void heap_push_lane(struct event_heap *heap, struct lane *lane, struct core_packet *packet);
struct core_packet *heap_pop_lane(struct event_heap *heap, struct lane *lane);

static inline uint64_t heap_time_ns(const struct event_heap *heap)
{
	return heap->count ? heap->entries[0].time_ns : CORE_NEVER_NS;
}

/* links.c */
uint64_t link_wire_bits(uint32_t frame_bytes);
/* The link serves wire_bits from ready_ns on, or from when it is free: *finish is when it has. True: it had
 * to wait, or went on without a gap.
 */
bool link_serve(const struct link_clock *clock, uint64_t rate_bps, uint64_t ready_ns, uint64_t wire_bits,
		struct link_clock *finish);
uint64_t link_access(struct port *port, struct flow *flow, uint64_t arrival_ns, uint32_t frame_bytes);

void link_find_lookahead(
	struct core *core); /* after a change of anything that core_lookahead_ns depends on */

/* flows.c */
size_t flow_table_bytes(uint32_t flows);
void flow_table_init(struct flow_table *table, void *memory, uint32_t flows);
bool flow_key_of_frame(struct flow_key *key, const uint8_t *frame, uint32_t bytes);
struct flow *flow_find(const struct flow_table *table, const struct flow_key *key);
struct flow *flow_add(struct flow_table *table, const struct flow_key *key); /* NULL: full */
void flow_clear(struct flow_table *table);

/* mirror.c */
struct mirror_session *mirror_find(struct core *core, uint32_t session);
struct mirror_session *mirror_add(struct core *core, uint32_t session); /* NULL: full */
/* The clone that the pipeline asked for, on its way to its port; NULL, counted, if it cannot be made. */
struct core_packet *mirror_clone(struct core *core, const struct core_packet *original,
				 enum instance_type kind);

/* traffic_manager.c */
void traffic_enqueue(struct core *core, uint16_t port, struct core_packet *packet, uint64_t now_ns);
void traffic_depart(struct core *core);

/* stats.c */
struct text;
void stats_write(const struct core *core, struct text *text);

/* control.c: the replies that an executor continues with lines of its own. The caller ends the text, so a reply that
 * is cut ends once. */
void control_program(const struct core *core, struct text *text);
void control_stats(const struct core *core, struct text *text);

#endif
