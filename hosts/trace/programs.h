/* SPDX-License-Identifier: MIT
 * The BPF programs, their rings and counters in the kernel. Nothing is pinned: all of it goes when this
 * process does, however it ends.
 */
#ifndef TRACE_PROGRAMS_H
#define TRACE_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel.h"
#include "options.h"
#include "tcp_trace.h"

struct tcp_trace_bpf;
struct ring_buffer;

/* What the kernel measured, of all programs together. */
struct program_cost {
	bool known; /* false: the kernel does not tell who has no privileges (before Linux 5.19) */
	uint64_t runs;
	uint64_t run_time_ns;
	uint64_t skipped; /* runs of first programs that did not happen: the second ones must have seen as
			     many events */
};

/* Runs of first programs that the kernel skipped, and events that second programs found unseen. Equal, or the
 * trace has a gap (skipped is larger) or an event twice.
 */
struct program_balance {
	uint64_t skipped;
	uint64_t rescued;
};

struct programs {
	struct tcp_trace_bpf *bpf;
	struct ring_buffer *reader;
	const struct cpu_counters *counters; /* one a possible CPU, mapped from the kernel */
	uint64_t counters_bytes;
	uint32_t cpus;
	uint32_t rings; /* CPUs present when it started */
	uint64_t ring_bytes;
	int stats_fd;		 /* the kernel measures programs while it is open */
	uint64_t skipped_before; /* all programs were attached, as rescued_before */
	uint64_t rescued_before;
	bool detached;
	struct program_balance final; /* when they were detached */
};

/* Loads, makes rings, attaches nothing yet. 0 or -errno after one line. */
int programs_open(struct programs *programs, const struct kernel *kernel, uint32_t netns_inode,
		  const struct options *options, record_sink sink, void *context);
int programs_attach(struct programs *programs);

/* Empties the rings into the sink. */
void programs_read(struct programs *programs);

/* Counters of all CPUs added up. */
struct cpu_counters programs_count(const struct programs *programs);
struct program_balance programs_balance(const struct programs *programs);
/* Events, of any socket, that neither program of a tracepoint saw. */
uint64_t programs_missed(const struct programs *programs);
struct program_cost programs_cost(const struct programs *programs);

/* No event is taken after this; what is in the rings is still there. */
void programs_detach(struct programs *programs);
void programs_close(struct programs *programs);

#endif
