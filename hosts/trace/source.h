/* SPDX-License-Identifier: MIT
 * Where the events come from: BPF programs (programs.h) or trace events in the binary ring of tracefs (tracefs_source.h).
 * Both deliver records (wire/tcp_record.h) and account for every event with the same counters.
 */
#ifndef TRACE_SOURCE_H
#define TRACE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "options.h"
#include "programs.h"
#include "tracefs_source.h"

struct source_counts {
	uint64_t events; /* of the selected sockets; = records delivered + lost_in_rings + lost_unseen */
	uint64_t probe_events;	    /* bpf: delivered or lost; tracefs: delivered only */
	uint64_t retransmit_events; /* the same; failed retransmissions are not counted */
	uint64_t lost_in_rings;	    /* the ring was full */
	uint64_t lost_unseen; /* bpf: no program ran, any socket; tracefs: missing or damaged in pages */
};

struct source;

struct source_operations {
	/* Starts recording, without privileges: every file is open by now. 0 or -errno after one message. */
	int (*start)(struct source *source);
	/* Empties the rings into the sink. */
	void (*read)(struct source *source);
	struct source_counts (*count)(const struct source *source);
	/* source_counts.lost_in_rings: the only counter that is cheap enough for every reading. */
	uint64_t (*lost_in_rings)(const struct source *source);
	/* Stops recording. The rings keep their records. */
	void (*stop)(struct source *source);
	/* Events in the rings after stop; taken: records delivered so far. */
	uint64_t (*unread)(const struct source *source, uint64_t taken);
	/* Reports losses and their cause on stderr. Returns whether an event was lost or recorded twice. */
	bool (*report_losses)(const struct source *source);
	/* Prints the source's part of the summary: "name":value, with a comma before each. */
	void (*print)(const struct source *source, FILE *file);
	/* 0, or -errno after one message if something stays in the kernel. */
	int (*close)(struct source *source);
};

struct source {
	const struct source_operations *operations; /* NULL: nothing is open */
	struct programs programs;
	struct tracefs_source tracefs;
};

/* Opens the source that the options select; starts nothing yet. 0 or -errno after one message; close in either case. */
int source_open(struct source *source, const struct options *options, record_sink sink, void *context);
int source_close(struct source *source);

extern const struct source_operations bpf_source, tracefs_source;

#endif
