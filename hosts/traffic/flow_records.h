/* SPDX-License-Identifier: MIT
 * flows.bsf: a record of each flow that has begun (wire/flow_record.def), written when the flow ends, or at the end of
 * the traffic.
 */
#ifndef TRAFFIC_FLOW_RECORDS_H
#define TRAFFIC_FLOW_RECORDS_H

#include "../trace/block_writer.h"
#include "flow_socket.h"

struct flow_records {
	struct block_writer writer;
	bool open;
};

/* Creates the file. If path is NULL, no flow is recorded. Returns 0, or -errno after one message. */
int flow_records_open(struct flow_records *records, const char *path);

/* Adds the record of flow number `line`. `end` is one of FLOW_END_*. */
void flow_records_add(struct flow_records *records, const struct path *path, const struct flow *flow,
		      uint32_t line, uint8_t end, const struct tcp_info *info, uint16_t timeouts);

/* Closes the file. 0, or -EIO if the file lacks a record or could not be synced. */
int flow_records_close(struct flow_records *records);

#endif
