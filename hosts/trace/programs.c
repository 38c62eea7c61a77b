// SPDX-License-Identifier: MIT
// Loads the BPF programs with one ring per CPU present, reads the rings and the kernel's run-time statistics.
#include "programs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../lib/report.h"
#include "tcp_trace.skel.h"

enum { BALANCE_TRIES = 20, BALANCE_PAUSE_US = 200 };

static int explain_load(int err)
{
	if (err == -EPERM)
		complain("loading the BPF programs: not permitted: run as root (or with CAP_BPF, CAP_PERFMON "
			 "and "
			 "CAP_NET_ADMIN)");
	else
		complain("loading the BPF programs: %s: the kernel must be Linux 5.12 or later with "
			 "CONFIG_BPF_SYSCALL, "
			 "CONFIG_BPF_JIT and CONFIG_DEBUG_INFO_BTF; --verbose shows the verifier's log",
			 strerror(-err));
	return err;
}

static int load(struct programs *programs, const struct kernel *kernel, uint32_t netns_inode,
		const struct options *options)
{
	LIBBPF_OPTS(bpf_object_open_opts, open_options,
		    .btf_custom_path = options->btf ? options->btf : KERNEL_BTF);
	int err;

	programs->bpf = tcp_trace_bpf__open_opts(&open_options);
	if (!programs->bpf)
		return explain_load(-errno);
	programs->bpf->rodata->traced_netns_inode = netns_inode;
	programs->bpf->rodata->first_remote_port = options->first_port;
	programs->bpf->rodata->last_remote_port = options->last_port;
	programs->bpf->rodata->retransmit_has_error = kernel->retransmit_has_error;
	bpf_map__set_max_entries(programs->bpf->maps.rings, kernel->possible_cpus);
	bpf_map__set_max_entries(programs->bpf->maps.counters, kernel->possible_cpus);
	err = tcp_trace_bpf__load(programs->bpf);
	return err ? explain_load(err) : 0;
}

static int map_counters(struct programs *programs)
{
	long page = sysconf(_SC_PAGESIZE);
	uint64_t bytes = programs->cpus * sizeof(struct cpu_counters);
	void *mapped;

	bytes = (bytes + (uint64_t)page - 1) / (uint64_t)page * (uint64_t)page;
	mapped = mmap(NULL, bytes, PROT_READ, MAP_SHARED, bpf_map__fd(programs->bpf->maps.counters), 0);
	if (mapped == MAP_FAILED) {
		complain("mapping the counters of the BPF programs: %s", strerror(errno));
		return -errno;
	}
	programs->counters = mapped;
	programs->counters_bytes = bytes;
	return 0;
}

struct ring_request {
	struct programs *programs;
	record_sink sink;
	void *context;
};

static int add_ring(uint32_t cpu, void *context)
{
	struct ring_request *request = context;
	struct programs *programs = request->programs;
	int fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "tcp_records", 0, 0, (uint32_t)programs->ring_bytes,
				NULL);
	int err;

	if (fd < 0) {
		err = -errno;
		complain("making a ring of %" PRIu64 " bytes for CPU %u: %s: give a smaller --ring-mib",
			 programs->ring_bytes, cpu, strerror(-err));
		return err;
	}
	err = bpf_map_update_elem(bpf_map__fd(programs->bpf->maps.rings), &cpu, &fd, BPF_ANY);
	if (!err && !programs->reader) {
		programs->reader = ring_buffer__new(fd, request->sink, request->context, NULL);
		err = programs->reader ? 0 : -errno;
	} else if (!err) {
		err = ring_buffer__add(programs->reader, fd, request->sink, request->context);
	}
	if (err)
		complain("setting up the ring of CPU %u: %s", cpu, strerror(-err));
	close(fd); /* the map of rings and libbpf's mapping keep the ring */
	programs->rings++;
	return err;
}

int programs_open(struct programs *programs, const struct kernel *kernel, uint32_t netns_inode,
		  const struct options *options, record_sink sink, void *context)
{
	struct ring_request request = {programs, sink, context};
	int err;

	*programs = (struct programs){
		.cpus = kernel->possible_cpus,
		.ring_bytes = options->ring_bytes,
		.stats_fd = -1,
	};
	err = load(programs, kernel, netns_inode, options);
	if (err)
		return err;
	err = map_counters(programs);
	if (err)
		return err;
	err = kernel_each_present_cpu(add_ring, &request);
	if (err)
		return err;
	programs->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (programs->stats_fd < 0)
		complain("switching on the kernel's measurement of BPF programs: %s: their cost will be "
			 "missing from the summary",
			 strerror(errno));
	return 0;
}

/* Attaches the first program of each tracepoint before the second: the kernel calls them in that order. */
int programs_attach(struct programs *programs)
{
	struct tcp_trace_bpf *bpf = programs->bpf;
	const struct {
		struct bpf_program *program;
		struct bpf_link **link;
	} order[] = {
		{bpf->progs.on_tcp_probe, &bpf->links.on_tcp_probe},
		{bpf->progs.rescue_tcp_probe, &bpf->links.rescue_tcp_probe},
		{bpf->progs.on_tcp_retransmit_skb, &bpf->links.on_tcp_retransmit_skb},
		{bpf->progs.rescue_tcp_retransmit_skb, &bpf->links.rescue_tcp_retransmit_skb},
	};

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		*order[i].link = bpf_program__attach(order[i].program);
		if (!*order[i].link) {
			int err = -errno;

			complain("attaching %s to its tracepoint: %s; --verbose shows more",
				 bpf_program__name(order[i].program), strerror(-err));
			return err;
		}
	}
	programs->skipped_before = programs_cost(programs).skipped;
	programs->rescued_before = programs_count(programs).rescued;
	return 0;
}

void programs_read(struct programs *programs)
{
	ring_buffer__consume(programs->reader); /* returns the sink's own error, if any: nothing to do */
}

struct cpu_counters programs_count(const struct programs *programs)
{
	struct cpu_counters sum = {0};

	for (uint32_t cpu = 0; cpu < programs->cpus; cpu++) {
		const volatile struct cpu_counters *counters = &programs->counters[cpu];

		sum.probe_events += counters->probe_events;
		sum.retransmit_events += counters->retransmit_events;
		sum.lost += counters->lost;
		sum.retransmit_failures += counters->retransmit_failures;
		sum.other_sockets += counters->other_sockets;
		sum.rescued += counters->rescued;
	}
	return sum;
}

struct program_cost programs_cost(const struct programs *programs)
{
	struct program_cost cost = {.known = programs->stats_fd >= 0};
	struct bpf_program *program;

	bpf_object__for_each_program(program, programs->bpf->obj)
	{
		struct bpf_prog_info info = {0};
		uint32_t bytes = sizeof(info);

		if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &bytes)) {
			cost.known = false;
			continue;
		}
		cost.runs += info.run_cnt;
		cost.run_time_ns += info.run_time_ns;
		if (program == programs->bpf->progs.on_tcp_probe ||
		    program == programs->bpf->progs.on_tcp_retransmit_skb)
			cost.skipped += info.recursion_misses;
	}
	return cost;
}

struct program_balance programs_balance(const struct programs *programs)
{
	if (programs->detached)
		return programs->final;
	return (struct program_balance){
		.skipped = programs_cost(programs).skipped - programs->skipped_before,
		.rescued = programs_count(programs).rescued - programs->rescued_before,
	};
}

uint64_t programs_missed(const struct programs *programs)
{
	struct program_balance balance = programs_balance(programs);

	return balance.skipped > balance.rescued ? balance.skipped - balance.rescued : 0;
}

/* Reads the balance before detaching, because detaching removes the links one by one. An event that is between its two
 * programs at that moment unbalances the counters, so the reading is repeated.
 */
void programs_detach(struct programs *programs)
{
	for (int tries = 0; tries < BALANCE_TRIES; tries++) {
		programs->final = programs_balance(programs);
		if (programs->final.skipped == programs->final.rescued)
			break;
		usleep(BALANCE_PAUSE_US);
	}
	programs->detached = true;
	tcp_trace_bpf__detach(programs->bpf);
}

void programs_close(struct programs *programs)
{
	if (programs->counters)
		munmap((void *)(uintptr_t)programs->counters, programs->counters_bytes);
	ring_buffer__free(programs->reader);
	tcp_trace_bpf__destroy(programs->bpf);
	if (programs->stats_fd >= 0)
		close(programs->stats_fd);
	*programs = (struct programs){.stats_fd = -1};
}
