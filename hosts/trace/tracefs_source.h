/* SPDX-License-Identifier: MIT
 * A source that reads trace events from the binary rings of tracefs: our custom events (kernel_event/) if the kernel
 * has them, else the stock events of the same tracepoints.
 */
#ifndef TRACE_TRACEFS_SOURCE_H
#define TRACE_TRACEFS_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "event_record.h"
#include "instance.h"
#include "local_addresses.h"
#include "options.h"

/* The ring of one CPU. The kernel's counters are as of the last read. */
struct trace_ring {
	uint32_t cpu;
	int pages, stats;     /* descriptors: trace_pipe_raw, stats */
	uint64_t taken;	      /* events of any kind in the pages read */
	uint64_t missed;      /* lost events by the flags of the pages */
	uint64_t kernel_lost; /* lost events by the kernel's counters */
	uint64_t kernel_read; /* events read, by the kernel's counter */
	uint64_t entries;     /* events that the ring still holds */
};

struct tracefs_source {
	struct instance instance;
	struct page_layout layout;
	struct event_decoder decoder;
	struct local_addresses addresses; /* of the traced namespace; stock events only */
	bool custom;			  /* custom events, not stock events */
	int enable[2];			  /* descriptors, in the order of the decoder's kinds */
	struct trace_ring *rings;
	uint32_t ring_count;
	uint64_t ring_bytes; /* of each ring, as requested */
	uint8_t *page;
	uint32_t page_bytes;
	record_sink sink;
	void *context;
	bool interrupted; /* the sink has ended the reading early */
	uint64_t probe_events, retransmit_events, retransmit_failures, other_sockets;
	uint64_t damaged_events, damaged_pages; /* could not be decoded */
};

/* Opens everything, enables nothing yet. 0 or -errno after one message. */
int tracefs_source_open(struct tracefs_source *source, const struct options *options, uint32_t netns_inode,
			record_sink sink, void *context);

#endif
