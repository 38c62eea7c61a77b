/* SPDX-License-Identifier: MIT
 * Where the events come from: BPF programs (programs.h) or trace events in the binary ring of tracefs (tracefs_source.h).
 * Both hand over whole records (wire/tcp_record.h) and account for every event, in the same words.
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
	uint64_t events; /* of the sockets asked for; = records handed over + lost_in_rings + lost_unseen */
	uint64_t probe_events;	    /* of which these; tracefs does not tell it of lost ones */
	uint64_t retransmit_events; /* sent, not failed */
	uint64_t lost_in_rings;	    /* no room */
	uint64_t lost_unseen;
};

struct source;

struct source_operations {
	/* 0 or -errno after one line. What it needs is open by now, so it may run without privileges. */
	int (*start)(struct source *source);
	/* Empties the rings into the sink. */
	void (*read)(struct source *source);
	struct source_counts (*count)(const struct source *source);
	/* Of these the only one that is cheap enough to ask at every reading. */
	uint64_t (*lost_in_rings)(const struct source *source);
	/* No event is taken after this; what is in the rings is still there. */
	void (*stop)(struct source *source);
	/* Events still to be read, once it is stopped; taken: records handed over. */
	uint64_t (*unread)(const struct source *source, uint64_t taken);
	/* Says what was lost and why. Returns whether anything was, or was recorded twice. */
	bool (*tell_losses)(const struct source *source);
	/* Its own part of the summary: "name":value, with a comma before each. */
	void (*print)(const struct source *source, FILE *file);
	/* 0, or -errno after one line when something of it stays in the kernel. */
	int (*close)(struct source *source);
};

struct source {
	const struct source_operations *operations; /* NULL: nothing is open */
	struct programs programs;
	struct tracefs_source tracefs;
};

/* Opens what the options ask for, attaches nothing yet. 0 or -errno after one line; close it in any case. */
int source_open(struct source *source, const struct options *options, record_sink sink, void *context);
int source_close(struct source *source);

extern const struct source_operations bpf_source, tracefs_source;

#endif
