// SPDX-License-Identifier: MIT
// Prepares an instance for the source: clock, rings, filters, and descriptors of all files that the source needs later,
// when it may have lost its privileges.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../lib/report.h"
#include "kernel.h"
#include "tracefs.h"
#include "tracefs_source.h"

static const char *const SUB_BUFFER_KIB = "64";

static const struct {
	const char *name;
	uint8_t event;
} EVENTS[2] = {{"tcp_probe", TCP_EVENT_PROBE}, {"tcp_retransmit_skb", TCP_EVENT_RETRANSMIT}};

static const char *group_of(const struct tracefs_source *source)
{
	return source->custom ? "bufferscope" : "tcp";
}

static int set(const struct tracefs_source *source, const char *file, const char *text, const char *advice)
{
	int err = tracefs_write(source->instance.dir, file, text);

	if (err)
		complain("writing '%s' to %s of tracefs instance %s: %s%s", text, file, source->instance.name,
			 strerror(-err), advice);
	return err;
}

static int read_format(const struct tracefs_source *source, const char *file, char *text)
{
	int err = tracefs_read(source->instance.dir, file, text);

	if (err)
		complain("reading %s of tracefs: %s: the kernel must be Linux 5.0 or later with CONFIG_INET "
			 "and "
			 "CONFIG_TRACING",
			 file, strerror(-err));
	return err;
}

static int read_layout(struct tracefs_source *source, char *text)
{
	char header_event[TRACEFS_TEXT_BYTES];
	int err = read_format(source, "events/header_page", text);

	if (!err)
		err = read_format(source, "events/header_event", header_event);
	if (err)
		return err;
	err = page_layout_parse(&source->layout, text, header_event);
	if (err)
		complain("reading events/header_page and header_event of tracefs: this program does not know "
			 "the ring that they describe; use --source bpf");
	source->page_bytes = source->layout.data.at + source->layout.data.bytes;
	return err;
}

static int read_kind(struct tracefs_source *source, int number, char *text)
{
	struct event_kind *kind = &source->decoder.kind[number];
	const struct event_field *type;
	struct event_format format;
	char path[128];
	const char *missing;
	int err;

	snprintf(path, sizeof(path), "events/%s/%s/format", group_of(source), EVENTS[number].name);
	err = read_format(source, path, text);
	if (err)
		return err;
	err = event_format_parse(&format, text);
	type = err ? NULL : event_format_find(&format, "common_type", 2);
	if (!type) {
		complain("reading %s of tracefs: this program cannot parse the description of the event",
			 path);
		return -EBADMSG;
	}
	source->decoder.type = *type;
	missing = source->custom ? event_kind_custom(kind, &format, EVENTS[number].event)
				 : event_kind_stock(kind, &format, EVENTS[number].event);
	if (missing && source->custom)
		complain("reading %s of tracefs: field '%s' is missing or has another size: build the lab's "
			 "kernel again, from this checkout",
			 path, missing);
	else if (missing)
		complain("reading %s of tracefs: the event has no field '%s' of the known size: this kernel "
			 "needs "
			 "--source bpf",
			 path, missing);
	return missing ? -EBADMSG : 0;
}

/* The kernel filters by namespace and ports, as far as the events have these fields. */
static int set_filters(const struct tracefs_source *source, const struct options *options,
		       uint32_t netns_inode)
{
	bool all_ports = !options->first_port && options->last_port == UINT16_MAX;
	char filter[128] = "", path[128];
	int length = 0, err = 0;

	if (source->custom)
		length = snprintf(filter, sizeof(filter), "netns_inode == %" PRIu32, netns_inode);
	if (!all_ports)
		snprintf(filter + length, sizeof(filter) - (size_t)length, "%sdport >= %u && dport <= %u",
			 length ? " && " : "", options->first_port, options->last_port);
	for (int i = 0; !err && i < 2 && filter[0]; i++) {
		snprintf(path, sizeof(path), "events/%s/%s/filter", group_of(source), EVENTS[i].name);
		err = set(source, path, filter, ": the kernel needs CONFIG_EVENT_TRACING");
	}
	return err;
}

/* One read(2) returns at most one page of the ring, and a page of 4 KiB holds 23 custom events. Pages of SUB_BUFFER_KIB
 * need a sixteenth of the reads. Kernels before Linux 6.8 have no such setting, and fragmented memory may have no room:
 * the pages then stay as they are. events/header_page describes the pages after the change.
 */
static void enlarge_pages(const struct tracefs_source *source)
{
	(void)tracefs_write(source->instance.dir, "buffer_subbuf_size_kb", SUB_BUFFER_KIB);
}

static int set_up_rings(const struct tracefs_source *source)
{
	char kib[32];
	int err;

	snprintf(kib, sizeof(kib), "%" PRIu64, source->ring_bytes >> 10);
	err = set(source, "trace_clock", "mono", "");
	if (!err) /* a full ring keeps its events and counts new ones as lost */
		err = set(source, "trace_options", "nooverwrite", "");
	return err ? err : set(source, "buffer_size_kb", kib, ": give a smaller --ring-mib");
}

static int open_file(const struct tracefs_source *source, const char *path, int flags, int *fd)
{
	int err;

	*fd = openat(source->instance.dir, path, flags | O_CLOEXEC);
	if (*fd >= 0)
		return 0;
	err = errno;
	complain("opening %s of tracefs instance %s: %s", path, source->instance.name, strerror(err));
	return -err;
}

static int open_ring(uint32_t cpu, void *context)
{
	struct tracefs_source *source = context;
	struct trace_ring *rings = realloc(source->rings, (source->ring_count + 1) * sizeof(*rings));
	struct trace_ring *ring;
	char path[64];
	int err;

	if (!rings) {
		complain("no memory for the rings of %u processors", cpu + 1);
		return -ENOMEM;
	}
	source->rings = rings;
	ring = &rings[source->ring_count++];
	*ring = (struct trace_ring){.cpu = cpu, .pages = -1, .stats = -1};
	snprintf(path, sizeof(path), "per_cpu/cpu%" PRIu32 "/trace_pipe_raw", cpu);
	err = open_file(source, path, O_RDONLY | O_NONBLOCK, &ring->pages);
	if (err)
		return err;
	snprintf(path, sizeof(path), "per_cpu/cpu%" PRIu32 "/stats", cpu);
	return open_file(source, path, O_RDONLY, &ring->stats);
}

static int open_enables(struct tracefs_source *source)
{
	char path[128];
	int err = 0;

	for (int i = 0; !err && i < 2; i++) {
		snprintf(path, sizeof(path), "events/%s/%s/enable", group_of(source), EVENTS[i].name);
		err = open_file(source, path, O_WRONLY, &source->enable[i]);
	}
	return err;
}

/* Reads the kernel's descriptions of its formats and derives the layouts from them. */
static int read_formats(struct tracefs_source *source)
{
	char text[TRACEFS_TEXT_BYTES];
	int err;

	source->custom = !tracefs_read(source->instance.dir, "events/bufferscope/tcp_probe/format", text);
	err = read_layout(source, text);
	for (int i = 0; !err && i < 2; i++)
		err = read_kind(source, i, text);
	if (err)
		return err;
	source->page = malloc(source->page_bytes);
	if (!source->page)
		complain("no memory for a page of %u bytes of the rings", source->page_bytes);
	return source->page ? 0 : -ENOMEM;
}

int tracefs_source_open(struct tracefs_source *source, const struct options *options, uint32_t netns_inode,
			record_sink sink, void *context)
{
	int tracefs, err;

	*source = (struct tracefs_source){
		.instance = INSTANCE_NONE,
		.enable = {-1, -1},
		.ring_bytes = options->ring_bytes,
		.sink = sink,
		.context = context,
	};
	tracefs = tracefs_open();
	if (tracefs < 0)
		return tracefs;
	err = instance_make(&source->instance, tracefs);
	close(tracefs);
	if (!err)
		err = kernel_each_present_cpu(open_ring, source);
	if (err)
		return err;
	instance_settled(&source->instance);
	enlarge_pages(source);
	err = read_formats(source);
	if (!err)
		err = set_up_rings(source);
	if (!err)
		err = set_filters(source, options, netns_inode);
	if (!err && !source->custom)
		err = local_addresses_read(&source->addresses, options->netns);
	return err ? err : open_enables(source);
}
