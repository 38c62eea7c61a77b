/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The core's state, for files of the core only.
 */
#ifndef SOFTSWITCH_CORE_STATE_H
#define SOFTSWITCH_CORE_STATE_H

#include "core.h"
#include "dynamics.h"
#include "event_heap.h"
#include "flow.h"
#include "mirror.h"
#include "multicast.h"
#include "outer_queue.h"
#include "recirculation.h"
#include "scheduler.h"
#include "traffic_manager.h"
#include "watch.h"

#define CORE_TIME_MASK (((uint64_t)1 << 48) - 1)

struct core_stats {
	uint64_t pool_exhausted;
	uint64_t arrivals_clamped;
	uint64_t clones;
	uint64_t clone_drops; /* no such mirror session, or CORE_MAX_GENERATIONS reached */
	uint64_t multicast_copies;
	uint64_t multicast_drops; /* packets and clones to a group without ports */
	uint64_t port_unknown_drops;
	uint64_t priority_drops; /* the priority has no queue */
	uint64_t packets_used_max;
};

struct core {
	struct pipeline *pipeline;
	uint64_t now_ns; /* time of the last completed event */
	uint64_t next_seq;
	uint64_t lookahead_ns;
	struct event_heap arrivals;
	struct event_heap departures; /* packets in transmission; scheduler bmv2: the oldest of each queue */
	struct event_heap outputs;

	struct core_packet *free_packets;
	uint32_t packets_used;
	bool watching; /* the core makes postcards: watch */
	struct core_config config;

	struct flow_table flows;
	struct shared_link links[CORE_SHARED_LINKS + 1]; /* by number, from 1 */
	struct mirror_session mirrors[CORE_MIRROR_SESSIONS];
	struct multicast_group groups[CORE_MULTICAST_GROUPS];
	struct recirculation recirculation;
	struct core_stats stats;
	struct port ports[PIPELINE_PORTS];
	struct scheduler schedulers[CORE_SCHEDULED_PORTS + 1]; /* by number, from 1 */

	struct dynamics dynamics[CORE_DYNAMIC_PORTS + 1]; /* by number, from 1 */
	uint8_t dynamics_used;
	struct rate_entry *rate_entries; /* of all schedules; config has their number */
	uint32_t rate_entries_used;
	struct watch watch;
	struct outer_queue outer;
};

#endif
