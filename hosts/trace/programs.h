/* SPDX-License-Identifier: MIT
 * The BPF programs, their rings and counters in the kernel. Nothing is pinned, so the kernel frees all of it when
 * this process ends, even by SIGKILL.
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

/* The kernel's run-time statistics, summed over all programs. `known` is false if the kernel does not measure, or if
 * this process cannot read the statistics (before Linux 5.19 an unprivileged process cannot).
 */
struct program_cost {
	bool known;
	uint64_t runs;
	uint64_t run_time_ns;
	uint64_t
		skipped; /* runs of first programs that the kernel skipped; second programs rescue the events */
};

/* Each tracepoint has two programs, because the kernel skips a program that is already running on the CPU. `skipped`
 * are runs of first programs that the kernel skipped, `rescued` are events that only the second program recorded. If
 * skipped is larger, the trace has a gap; if rescued is larger, the trace has an event twice.
 */
struct program_balance {
	uint64_t skipped;
	uint64_t rescued;
};

struct programs {
	struct tcp_trace_bpf *bpf;
	struct ring_buffer *reader;
	const struct cpu_counters *counters; /* one per possible CPU, mapped from the kernel */
	uint64_t counters_bytes;
	uint32_t cpus;
	uint32_t rings; /* one per CPU present at the start */
	uint64_t ring_bytes;
	int stats_fd;		 /* the kernel measures programs while this is open */
	uint64_t skipped_before; /* when all programs had been attached */
	uint64_t rescued_before; /* at the same time */
	bool detached;
	struct program_balance final; /* when the programs were detached */
};

/* Loads the programs and makes the rings; attaches nothing yet. Returns 0, or -errno after one message. */
int programs_open(struct programs *programs, const struct kernel *kernel, uint32_t netns_inode,
		  const struct options *options, record_sink sink, void *context);
int programs_attach(struct programs *programs);

/* Empties the rings into the sink. */
void programs_read(struct programs *programs);

/* Counters of all CPUs added up. */
struct cpu_counters programs_count(const struct programs *programs);
struct program_balance programs_balance(const struct programs *programs);
/* Events of any socket that neither program of a tracepoint saw. */
uint64_t programs_missed(const struct programs *programs);
struct program_cost programs_cost(const struct programs *programs);

/* Stops recording. The rings keep their records. */
void programs_detach(struct programs *programs);
void programs_close(struct programs *programs);

#endif
