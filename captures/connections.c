// SPDX-License-Identifier: MIT
#include "connections.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"

enum { LEAST_POOL = 64 };

#define SECOND 1000000000LL
#define NONE   UINT32_MAX

enum lists { ENDED, DATAGRAMS, OPEN, LISTS };
static const int64_t timeout_ns[LISTS] = {10 * SECOND, 120 * SECOND, 900 * SECOND};

struct open {
	struct measured of;
	uint8_t list;
	uint32_t chain, newer, older;
};

struct connections {
	struct connections_settings settings;
	struct link link;
	struct open *pool;
	uint32_t *slots; /* heads of chains; as many as the pool has places, a power of 2 */
	uint32_t places, count, free;
	struct {
		uint32_t oldest, newest;
	} list[LISTS];
};

static uint32_t least(uint32_t one, uint32_t other)
{
	return one < other ? one : other;
}

static uint64_t mixed(uint64_t value)
{
	value ^= value >> 32;
	value *= 0x9e3779b97f4a7c15u;
	return value ^ value >> 29;
}

/* The same for both ways. */
static uint32_t slot_of(const struct connections *all, const uint64_t src[2], uint16_t src_port,
			const uint64_t dst[2], uint16_t dst_port, uint8_t protocol)
{
	uint64_t one = mixed(mixed(src[0]) + src[1] * 3 + src_port);
	uint64_t other = mixed(mixed(dst[0]) + dst[1] * 3 + dst_port);

	return (uint32_t)mixed(one + other + protocol) & (all->places - 1);
}

static uint32_t slot(const struct connections *all, const struct open *one)
{
	return slot_of(all, one->of.addr[0], one->of.port[0], one->of.addr[1], one->of.port[1],
		       one->of.protocol);
}

static void unlink_age(struct connections *all, uint32_t number)
{
	struct open *one = &all->pool[number];

	*(one->older == NONE ? &all->list[one->list].oldest : &all->pool[one->older].newer) = one->newer;
	*(one->newer == NONE ? &all->list[one->list].newest : &all->pool[one->newer].older) = one->older;
}

static void link_age(struct connections *all, uint32_t number, enum lists list)
{
	struct open *one = &all->pool[number];

	one->list = list;
	one->newer = NONE;
	one->older = all->list[list].newest;
	*(one->older == NONE ? &all->list[list].oldest : &all->pool[one->older].newer) = number;
	all->list[list].newest = number;
}

static int grow(struct connections *all)
{
	uint32_t before = all->places, places = before ? 2 * before : LEAST_POOL;
	struct open *pool = realloc(all->pool, places * sizeof(*pool));
	uint32_t *slots;

	if (!pool)
		return -ENOMEM;
	all->pool = pool;
	slots = realloc(all->slots, places * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	all->slots = slots;
	memset(slots, 0xff, places * sizeof(*slots));
	for (uint32_t number = before; number < places; number++)
		pool[number].chain = number + 1 < places ? number + 1 : NONE;
	all->free = before;
	/* All places before were taken. */
	all->places = places;
	for (uint32_t number = 0; number < before; number++) {
		pool[number].chain = slots[slot(all, &pool[number])];
		slots[slot(all, &pool[number])] = number;
	}
	return 0;
}

static void end(struct connections *all, uint32_t number, bool is_forgotten)
{
	struct open *one = &all->pool[number];
	uint32_t *link = &all->slots[slot(all, one)];
	struct connection row;

	row = measure_row(&all->link, &one->of, is_forgotten);
	all->settings.write(all->settings.to, &row);
	while (*link != number)
		link = &all->pool[*link].chain;
	*link = one->chain;
	unlink_age(all, number);
	one->chain = all->free;
	all->free = number;
	all->count--;
}

static uint32_t oldest(const struct connections *all)
{
	uint32_t result = NONE, head;

	for (int list = 0; list < LISTS; list++) {
		head = all->list[list].oldest;
		if (head != NONE &&
		    (result == NONE || all->pool[head].of.last_ns < all->pool[result].of.last_ns))
			result = head;
	}
	return result;
}

static void expire(struct connections *all)
{
	for (int list = 0; list < LISTS; list++)
		while (all->list[list].oldest != NONE &&
		       all->pool[all->list[list].oldest].of.last_ns < all->link.now_ns - timeout_ns[list])
			end(all, all->list[list].oldest, false);
}

static int side_of(const struct open *one, const uint64_t src[2], const uint64_t dst[2],
		   const struct captured_packet *packet)
{
	if (one->of.protocol != packet->ip_protocol)
		return -1;
	for (int side = 0; side < 2; side++)
		if (one->of.port[side] == packet->src_port && one->of.port[!side] == packet->dst_port &&
		    !memcmp(one->of.addr[side], src, sizeof(one->of.addr[0])) &&
		    !memcmp(one->of.addr[!side], dst, sizeof(one->of.addr[0])))
			return side;
	return -1;
}

/* A SYN of other numbers, after data or an end, is of a new connection between the same ports. */
static bool is_over(const struct open *one, int side, const struct captured_packet *packet)
{
	if (one->of.protocol != PROTOCOL_TCP || (packet->tcp_flags & (TCP_SYN | TCP_ACK)) != TCP_SYN)
		return false;
	return one->list == ENDED || side || packet->tcp_seq != one->of.syn_seq;
}

static int begin(struct connections *all, const uint64_t src[2], const uint64_t dst[2],
		 const struct captured_packet *packet, uint32_t *number)
{
	int initiator = (packet->tcp_flags & (TCP_SYN | TCP_ACK)) ==
			(TCP_SYN | TCP_ACK); /* the one who gets a SYN-ACK */
	struct open *one;

	if (all->count >= all->settings.most_open)
		end(all, oldest(all), true);
	if (all->free == NONE && grow(all))
		return -ENOMEM;
	*number = all->free;
	one = &all->pool[*number];
	all->free = one->chain;
	memset(one, 0, sizeof(*one));
	memcpy(one->of.addr[initiator], src, sizeof(one->of.addr[0]));
	memcpy(one->of.addr[!initiator], dst, sizeof(one->of.addr[0]));
	one->of.port[initiator] = packet->src_port;
	one->of.port[!initiator] = packet->dst_port;
	one->of.protocol = packet->ip_protocol;
	one->of.start_ns = all->link.now_ns;
	one->of.half[0].way = one->of.half[1].way = WAYS;
	one->chain = all->slots[slot(all, one)];
	all->slots[slot(all, one)] = *number;
	link_age(all, *number, one->of.protocol == PROTOCOL_TCP ? OPEN : DATAGRAMS);
	all->count++;
	return initiator;
}

int connections_add(struct connections *all, const struct captured_packet *packet)
{
	const uint64_t src[2] = {packet->src_addr_hi, packet->src_addr_lo};
	const uint64_t dst[2] = {packet->dst_addr_hi, packet->dst_addr_lo};
	bool has_tcp = packet->flags & CAPTURED_HAS_TCP;
	uint32_t headers = packet->ip_bytes - least(packet->payload_bytes, packet->ip_bytes), room;
	uint64_t packets = 1, ip_bytes = packet->ip_bytes;
	uint8_t way = packet->packet_type < WAYS ? packet->packet_type : WAYS;
	uint32_t number;
	struct open *one;
	struct half *half;
	enum lists list;
	int side = -1;

	if ((int64_t)packet->real_ns > all->link.now_ns)
		all->link.now_ns = (int64_t)packet->real_ns;
	expire(all);
	if (has_tcp && packet->ip_bytes > all->settings.mtu_bytes && headers < all->settings.mtu_bytes / 2) {
		room = all->settings.mtu_bytes - headers;
		packets = (packet->payload_bytes + room - 1) / room;
		ip_bytes += (packets - 1) * headers;
	}
	all->link.bytes[way] += measure_bytes_on_link(ip_bytes, packets);
	number = all->slots[slot_of(all, src, packet->src_port, dst, packet->dst_port, packet->ip_protocol)];
	for (; number != NONE; number = all->pool[number].chain) {
		side = side_of(&all->pool[number], src, dst, packet);
		if (side >= 0)
			break;
	}
	if (side >= 0 && has_tcp && is_over(&all->pool[number], side, packet)) {
		end(all, number, false);
		side = -1;
	}
	if (side < 0)
		side = begin(all, src, dst, packet, &number);
	if (side < 0)
		return side;
	one = &all->pool[number];
	one->of.last_ns = all->link.now_ns;
	half = &one->of.half[side];
	half->packets += packets;
	half->ip_bytes += ip_bytes;
	half->payload_bytes += packet->payload_bytes;
	half->way = way;
	number = (uint32_t)(one - all->pool);
	list = one->list;
	if (has_tcp) {
		struct captured_packet whole = *packet;

		whole.ip_bytes = (uint32_t)ip_bytes;
		if (measure_segment(&all->link, &one->of, side, &whole, packets))
			list = ENDED;
	}
	unlink_age(all, number);
	link_age(all, number, list);
	return 0;
}

struct connections *connections_new(const struct connections_settings *settings)
{
	struct connections *all = calloc(1, sizeof(*all));

	if (!all)
		return NULL;
	all->settings = *settings;
	all->link.rate_bps = settings->rate_bps;
	all->free = NONE;
	all->link.now_ns = INT64_MIN / 2;
	for (int list = 0; list < LISTS; list++)
		all->list[list].oldest = all->list[list].newest = NONE;
	if (grow(all)) {
		connections_free(all);
		return NULL;
	}
	return all;
}

void connections_end(struct connections *all)
{
	uint32_t number;

	while ((number = oldest(all)) != NONE)
		end(all, number, false);
}

void connections_free(struct connections *all)
{
	free(all->pool);
	free(all->slots);
	free(all);
}
