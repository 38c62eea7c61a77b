// SPDX-License-Identifier: MIT
// libFuzzer: arbitrary records as packets; no packet and no byte is lost, and no time is negative.
#include <stdlib.h>
#include <string.h>

#include "captures/connections.h"

static uint64_t packets, payload_bytes;

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void count(void *to, const struct connection *row)
{
	(void)to;
	packets += row->packets_out + row->packets_back;
	payload_bytes += row->payload_bytes_out + row->payload_bytes_back;
	require((int64_t)row->start_ns <= (int64_t)row->end_ns);
	require((int64_t)row->pause_ns >= 0 && row->pause_ns <= row->end_ns - row->start_ns);
	require(row->application_ns + row->window_ns + row->access_ns + row->link_ns + row->elsewhere_ns +
			row->start_up_ns <=
		row->end_ns - row->start_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct connections_settings settings = {1000000000, 65575, 3, count, NULL};
	struct connections *all = connections_new(&settings);
	uint64_t added = 0, added_bytes = 0;
	struct captured_packet packet;
	int64_t now_ns = 0;

	require(all);
	packets = payload_bytes = 0;
	for (; size >= sizeof(packet); data += sizeof(packet), size -= sizeof(packet)) {
		memcpy(&packet, data, sizeof(packet));
		now_ns += (int64_t)(packet.real_ns % 1000000000); /* times ascend */
		packet.real_ns = (uint64_t)now_ns;
		packet.ip_bytes &= 0xffff;
		packet.payload_bytes %= packet.ip_bytes + 1;
		packet.src_port &= 1; /* so that packets meet */
		packet.dst_port &= 1;
		packet.src_addr_hi = packet.src_addr_lo = packet.dst_addr_hi = packet.dst_addr_lo = 0;
		require(!connections_add(all, &packet));
		added++;
		added_bytes += packet.payload_bytes;
	}
	connections_end(all);
	require(packets == added && payload_bytes == added_bytes);
	connections_free(all);
	return 0;
}
