/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Settings of single flows, by 5-tuple, and of all other flows of a source port or a source address.
 */
#ifndef SOFTSWITCH_FLOW_H
#define SOFTSWITCH_FLOW_H

#include "link.h"

enum {
	PROTOCOL_TCP = 6,
	PROTOCOL_UDP = 17,
	FLOW_ADDRESS_BYTES = 16, /* IPv6, or IPv4-mapped */
};

/* Frames have keys of the first kind. The members that a key of another kind ignores are 0. */
enum flow_key_kind {
	KEY_FLOW,
	KEY_SOURCE_PORT,    /* ignores the destination */
	KEY_SOURCE_ADDRESS, /* ignores all but the source address */
	KEY_KINDS,
};

struct flow_key {
	uint8_t src_addr[FLOW_ADDRESS_BYTES];
	uint8_t dst_addr[FLOW_ADDRESS_BYTES];
	uint8_t src_port[2]; /* big-endian, as in the packet */
	uint8_t dst_port[2];
	uint8_t protocol;
	uint8_t kind;
	uint8_t zero[2];
};

struct flow {
	struct flow_key key;
	bool set;
	uint64_t delay_ns;
	uint64_t access_bps;
	uint32_t link; /* number of the shared access link that replaces its own; 0: none */
	struct link_clock access;
};

struct flow_table {
	struct flow *slots; /* open addressing; their number is a power of two, at most half are in use */
	uint32_t mask;
	uint32_t count;
	uint32_t of_kind[KEY_KINDS]; /* number of keys of each kind; their sum is count */
	uint32_t limit;
};

size_t flow_table_bytes(uint32_t flows);
void flow_table_init(struct flow_table *table, void *memory, uint32_t flows);
bool flow_key_of_frame(struct flow_key *key, const uint8_t *frame, uint32_t bytes);
struct flow *flow_find(const struct flow_table *table, const struct flow_key *key);
/* The settings of a frame's flow, else of its source port, else of its source address; NULL: none. */
struct flow *flow_of_frame(const struct flow_table *table, const struct flow_key *key);
struct flow *flow_add(struct flow_table *table, const struct flow_key *key); /* NULL: full */
void flow_clear(struct flow_table *table);

#endif
