/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Settings of single flows (one direction of a 5-tuple), source ports and source addresses, in a hash table with open
 * addressing. A frame belongs to a flow if it is TCP or UDP and its ports directly follow the IP header. Up to two VLAN
 * tags are skipped. No setting applies to other frames, such as later fragments and packets with IPv6 extension headers.
 */
#include "flow.h"
#include "freestanding.h"
#include "ip_place.h"

enum {
	PORTS_BYTES = 4,
};

static uint32_t slots_of(uint32_t flows)
{
	uint32_t slots = 2;

	while (slots < 2 * flows)
		slots *= 2;
	return slots;
}

size_t flow_table_bytes(uint32_t flows)
{
	return slots_of(flows) * sizeof(struct flow);
}

void flow_table_init(struct flow_table *table, void *memory, uint32_t flows)
{
	table->slots = memory;
	table->mask = slots_of(flows) - 1;
	table->limit = flows;
	table->count = 0;
	memset(table->of_kind, 0, sizeof(table->of_kind));
	memset(memory, 0, flow_table_bytes(flows));
}

static uint32_t hash_of(const struct flow_key *key)
{
	const uint8_t *at = (const uint8_t *)key;
	uint64_t hash = 0x9e3779b97f4a7c15;

	for (size_t offset = 0; offset < sizeof(*key); offset += 8) {
		uint64_t word;

		memcpy(&word, at + offset, 8);
		hash = (hash ^ word) * 0xff51afd7ed558ccd;
		hash ^= hash >> 32;
	}
	return (uint32_t)hash;
}

_Static_assert(sizeof(struct flow_key) % 8 == 0, "hash_of reads whole words");

/* The flow's slot, or the free slot for it. A free slot exists: the table is at most half full. */
static struct flow *slot_of(const struct flow_table *table, const struct flow_key *key)
{
	uint32_t at = hash_of(key) & table->mask;

	while (table->slots[at].set && memcmp(&table->slots[at].key, key, sizeof(*key)))
		at = (at + 1) & table->mask;
	return &table->slots[at];
}

struct flow *flow_find(const struct flow_table *table, const struct flow_key *key)
{
	struct flow *flow = slot_of(table, key);

	return flow->set ? flow : NULL;
}

struct flow *flow_of_frame(const struct flow_table *table, const struct flow_key *key)
{
	struct flow *flow = flow_find(table, key);
	struct flow_key source;

	if (flow || table->of_kind[KEY_FLOW] == table->count)
		return flow;
	memset(&source, 0, sizeof(source));
	memcpy(source.src_addr, key->src_addr, FLOW_ADDRESS_BYTES);
	if (table->of_kind[KEY_SOURCE_PORT]) {
		memcpy(source.src_port, key->src_port, sizeof(source.src_port));
		source.protocol = key->protocol;
		source.kind = KEY_SOURCE_PORT;
		flow = flow_find(table, &source);
	}
	if (flow || !table->of_kind[KEY_SOURCE_ADDRESS])
		return flow;
	memset(source.src_port, 0, sizeof(source.src_port));
	source.protocol = 0;
	source.kind = KEY_SOURCE_ADDRESS;
	return flow_find(table, &source);
}

struct flow *flow_add(struct flow_table *table, const struct flow_key *key)
{
	struct flow *flow = slot_of(table, key);

	if (flow->set)
		return flow;
	if (table->count >= table->limit)
		return NULL;
	memset(flow, 0, sizeof(*flow));
	flow->key = *key;
	flow->set = true;
	table->count++;
	table->of_kind[key->kind]++;
	return flow;
}

void flow_clear(struct flow_table *table)
{
	flow_table_init(table, table->slots, table->limit);
}

static bool ipv4_key(struct flow_key *key, const uint8_t *at, uint32_t left)
{
	uint32_t header_bytes;

	if (left < IPV4_BYTES || at[0] >> 4 != 4)
		return false;
	header_bytes = (at[0] & 15) * 4u;
	if (header_bytes < IPV4_BYTES || left < header_bytes + PORTS_BYTES || be16(at + 6) & 0x1fff)
		return false;
	key->protocol = at[9];
	memset(key->src_addr + 10, 0xff, 2);
	memset(key->dst_addr + 10, 0xff, 2);
	memcpy(key->src_addr + 12, at + 12, 4);
	memcpy(key->dst_addr + 12, at + 16, 4);
	memcpy(key->src_port, at + header_bytes, 2);
	memcpy(key->dst_port, at + header_bytes + 2, 2);
	return true;
}

static bool ipv6_key(struct flow_key *key, const uint8_t *at, uint32_t left)
{
	if (left < IPV6_BYTES + PORTS_BYTES || at[0] >> 4 != 6)
		return false;
	key->protocol = at[6];
	memcpy(key->src_addr, at + 8, FLOW_ADDRESS_BYTES);
	memcpy(key->dst_addr, at + 24, FLOW_ADDRESS_BYTES);
	memcpy(key->src_port, at + IPV6_BYTES, 2);
	memcpy(key->dst_port, at + IPV6_BYTES + 2, 2);
	return true;
}

bool flow_key_of_frame(struct flow_key *key, const uint8_t *frame, uint32_t bytes)
{
	uint32_t offset, type = ip_place(frame, bytes, &offset);
	bool has_ports = false;

	memset(key, 0, sizeof(*key));
	if (type == TYPE_IPV4)
		has_ports = ipv4_key(key, frame + offset, bytes - offset);
	else if (type == TYPE_IPV6)
		has_ports = ipv6_key(key, frame + offset, bytes - offset);
	return has_ports && (key->protocol == PROTOCOL_TCP || key->protocol == PROTOCOL_UDP);
}
