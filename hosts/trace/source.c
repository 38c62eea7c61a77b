// SPDX-License-Identifier: MIT
// Opens the source that the options name (--btf implies BPF). The default is BPF if the kernel supports it, because BPF
// fills every field of a record on any such kernel; else tracefs.
#include "source.h"

#include <errno.h>
#include <unistd.h>

#include "../../lib/report.h"
#include "kernel.h"

static int open_bpf(struct source *source, const struct options *options, uint32_t netns_inode,
		    record_sink sink, void *context)
{
	struct kernel kernel;
	int err = kernel_check(&kernel, options->btf ? options->btf : KERNEL_BTF, options->verbose);

	source->operations = &bpf_source;
	return err ? err : programs_open(&source->programs, &kernel, netns_inode, options, sink, context);
}

static int open_tracefs(struct source *source, const struct options *options, uint32_t netns_inode,
			record_sink sink, void *context)
{
	source->operations = &tracefs_source;
	return tracefs_source_open(&source->tracefs, options, netns_inode, sink, context);
}

int source_open(struct source *source, const struct options *options, record_sink sink, void *context)
{
	bool only_bpf = options->source == SOURCE_BPF || options->btf;
	uint32_t netns_inode;
	int err;

	*source = (struct source){.programs.stats_fd = -1};
	err = kernel_netns_inode(options->netns, &netns_inode);
	if (err)
		return err;
	if (options->source == SOURCE_TRACEFS || (!only_bpf && access(KERNEL_BTF, R_OK)))
		return open_tracefs(source, options, netns_inode, sink, context);
	err = open_bpf(source, options, netns_inode, sink, context);
	if (!err || only_bpf || err == -EPERM) /* EPERM: tracefs is not permitted either */
		return err;
	source_close(source);
	complain("continuing without BPF: reading events from tracefs");
	return open_tracefs(source, options, netns_inode, sink, context);
}

int source_close(struct source *source)
{
	int err = source->operations ? source->operations->close(source) : 0;

	source->operations = NULL;
	return err;
}
