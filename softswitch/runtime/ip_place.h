/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Where a frame's IP header begins: behind Ethernet and up to two VLAN tags.
 */
#ifndef SOFTSWITCH_IP_PLACE_H
#define SOFTSWITCH_IP_PLACE_H

#include <stdint.h>

#include "../../lib/frames.h"

enum {
	TYPE_IPV4 = 0x0800,
	TYPE_IPV6 = 0x86dd,
	TYPE_VLAN = 0x8100,
	TYPE_VLAN_OUTER = 0x88a8,
};

static inline uint32_t be16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

/* The type of the header at *offset; 0: the frame ends before. */
static inline uint32_t ip_place(const uint8_t *frame, uint32_t bytes, uint32_t *offset)
{
	uint32_t type;

	*offset = ETHERNET_BYTES;
	if (bytes < ETHERNET_BYTES)
		return 0;
	type = be16(frame + 12);
	for (int tags = 0; tags < 2 && (type == TYPE_VLAN || type == TYPE_VLAN_OUTER); tags++) {
		if (bytes < *offset + VLAN_BYTES)
			return 0;
		type = be16(frame + *offset + 2);
		*offset += VLAN_BYTES;
	}
	return type;
}

#endif
