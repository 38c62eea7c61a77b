// SPDX-License-Identifier: MIT
#include "flow_records.h"

#include <string.h>

#include "../../wire/flow_record.h"
#include "../trace/address.h"

int flow_records_open(struct flow_records *records, const char *path)
{
	int err;

	*records = (struct flow_records){0};
	if (!path)
		return 0;
	err = block_writer_open(&records->writer, path, BLOCK_FLOWS, FLOW_RECORD_VERSION, FLOW_RECORD_BYTES);
	records->open = !err;
	return err;
}

void flow_records_add(struct flow_records *records, const struct path *path, const struct flow *flow,
		      uint32_t line, uint8_t end, const struct tcp_info *info, uint16_t timeouts)
{
	struct flow_record record = {
		.syn_mono_ns = flow->syn_mono_ns,
		.connected_mono_ns = flow->connected_mono_ns,
		.started_mono_ns = flow->started_mono_ns,
		.ended_mono_ns = flow->ended_mono_ns,
		.size_bytes = flow->bytes,
		.acked_bytes = flow->bytes_acked,
		.busy_us = info->tcpi_busy_time,
		.rwnd_limited_us = info->tcpi_rwnd_limited,
		.sndbuf_limited_us = info->tcpi_sndbuf_limited,
		.line = line,
		.user = flow->user,
		.retransmits = (uint32_t)flow->retransmits,
		.min_rtt_us = info->tcpi_min_rtt,
		.srtt_us = info->tcpi_rtt,
		.mss_bytes = flow->connected_mono_ns ? info->tcpi_snd_mss : 0,
		.src_port = flow->client_port,
		.dst_port = flow->server_port,
		.timeouts = timeouts,
		.end = end,
	};

	if (!records->open)
		return;
	address_read(flow->source ? flow->source : &path->local, 0xffff, &record.src_addr_hi,
		     &record.src_addr_lo);
	address_read(&path->server.address, 0xffff, &record.dst_addr_hi, &record.dst_addr_lo);
	memcpy(block_writer_slot(&records->writer), &record, sizeof(record));
	block_writer_added(&records->writer);
}

int flow_records_close(struct flow_records *records)
{
	return records->open ? block_writer_close(&records->writer) : 0;
}
