/* SPDX-License-Identifier: MIT
 * Trace events in the binary rings of tracefs as a source: our own ones (kernel_event/) where the kernel has them, else
 * the stock ones of the same tracepoints.
 */
#ifndef TRACE_TRACEFS_SOURCE_H
#define TRACE_TRACEFS_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "event_record.h"
#include "instance.h"
#include "local_addresses.h"
#include "options.h"

/* The ring of one CPU. The kernel's counts are as they were when it was read last. */
struct trace_ring {
	uint32_t cpu;
	int pages, stats;     /* descriptors: trace_pipe_raw, stats */
	uint64_t taken;	      /* events of any kind found in pages */
	uint64_t missed;      /* by the flags of the pages */
	uint64_t kernel_lost; /* by the kernel's counts */
	uint64_t kernel_read; /* events that the kernel has handed over */
	uint64_t entries;     /* that it still holds */
};

struct tracefs_source {
	struct instance instance;
	struct page_layout layout;
	struct event_decoder decoder;
	struct local_addresses addresses; /* stock events: of the namespace that was asked for */
	bool ours;
	int enable[2]; /* descriptors, in the order of the decoder's kinds */
	struct trace_ring *rings;
	uint32_t ring_count;
	uint64_t ring_bytes; /* of each, as asked for */
	uint8_t *page;
	uint32_t page_bytes;
	record_sink sink;
	void *context;
	bool interrupted; /* the sink asked for an early end of the reading */
	uint64_t probe_events, retransmit_events, retransmit_failures, other_sockets;
	uint64_t damaged_events, damaged_pages; /* that made no sense */
};

/* Opens everything, enables nothing yet. 0 or -errno after one line. */
int tracefs_source_open(struct tracefs_source *source, const struct options *options, uint32_t netns_inode,
			record_sink sink, void *context);

#endif
