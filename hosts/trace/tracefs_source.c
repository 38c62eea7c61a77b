// SPDX-License-Identifier: MIT
// Reads the rings page by page and reconciles the counters. Events that the kernel counts as read must be in the pages
// and decodable, else they are lost_unseen. Events that the kernel's counters or a page's flags report as lost are
// lost_in_rings.
#include "tracefs_source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../lib/report.h"
#include "ring_page.h"
#include "source.h"
#include "tracefs.h"

enum {
	SETTLE_NS = 20000000, /* for tracepoints that still write an event when they are disabled */
	STATS_BYTES = 1024,
};

/* Reading ---------------------------------------------------------------------------------------------------------- */

struct ring_context {
	struct tracefs_source *source;
	uint32_t cpu;
};

static void take_record(struct tracefs_source *source, struct tcp_record *record, bool failed)
{
	if (!source->custom &&
	    !local_addresses_have(&source->addresses, record->src_addr_hi, record->src_addr_lo)) {
		source->other_sockets++;
		return;
	}
	if (failed) {
		source->retransmit_failures++;
		return;
	}
	source->probe_events += record->event == TCP_EVENT_PROBE;
	source->retransmit_events += record->event == TCP_EVENT_RETRANSMIT;
	if (source->sink(source->context, record, sizeof(*record)))
		source->interrupted = true;
}

static void take_event(void *context, uint64_t ns, const uint8_t *data, uint32_t bytes)
{
	const struct ring_context *ring = context;
	struct tcp_record record;
	enum event_outcome outcome =
		event_decode(&ring->source->decoder, ns, ring->cpu, data, bytes, &record);

	if (outcome == EVENT_RECORD || outcome == EVENT_FAILED)
		take_record(ring->source, &record, outcome == EVENT_FAILED);
	else if (outcome == EVENT_DAMAGED)
		ring->source->damaged_events++;
	/* EVENT_OTHER: somebody else enabled another event in this instance */
}

static uint64_t stats_value(const char *text, const char *name)
{
	const char *line = strstr(text, name);

	return line ? strtoull(line + strlen(name), NULL, 10) : 0;
}

static void read_stats(struct trace_ring *ring)
{
	char text[STATS_BYTES + 1] = "\n";
	ssize_t got = pread(ring->stats, text + 1, STATS_BYTES - 1, 0);

	if (got <= 0)
		return;
	ring->kernel_lost = stats_value(text, "\noverrun:") + stats_value(text, "\ncommit overrun:") +
			    stats_value(text, "\ndropped events:");
	ring->kernel_read = stats_value(text, "\nread events:");
	ring->entries = stats_value(text, "\nentries:");
}

static void take_page(struct tracefs_source *source, struct trace_ring *ring, size_t bytes)
{
	struct ring_context context = {source, ring->cpu};
	struct page_account account;

	if (ring_page_walk(&source->layout, source->page, bytes, take_event, &context, &account))
		source->damaged_pages++;
	ring->taken += account.events;
	ring->missed += account.missed + account.missed_uncounted;
}

/* Reads at most as many pages as the ring has, so a fast writer cannot hold the reader in one ring. */
static void read_ring(struct tracefs_source *source, struct trace_ring *ring)
{
	uint64_t pages = source->ring_bytes / source->layout.data.bytes + 2;
	ssize_t got = 1;

	while (pages-- && !source->interrupted && got > 0) {
		got = read(ring->pages, source->page, source->page_bytes);
		if (got > 0)
			take_page(source, ring, (size_t)got);
	}
	read_stats(ring);
}

static void read_rings(struct source *base)
{
	base->tracefs.interrupted = false;
	for (uint32_t i = 0; i < base->tracefs.ring_count; i++)
		read_ring(&base->tracefs, &base->tracefs.rings[i]);
}

/* Accounting ------------------------------------------------------------------------------------------------------- */

static uint64_t ring_lost(const struct trace_ring *ring)
{
	return ring->missed > ring->kernel_lost ? ring->missed : ring->kernel_lost;
}

static uint64_t lost_in_rings(const struct source *base)
{
	uint64_t lost = 0;

	for (uint32_t i = 0; i < base->tracefs.ring_count; i++)
		lost += ring_lost(&base->tracefs.rings[i]);
	return lost;
}

static struct source_counts count(const struct source *base)
{
	const struct tracefs_source *source = &base->tracefs;
	struct source_counts counts = {
		.probe_events = source->probe_events,
		.retransmit_events = source->retransmit_events,
		.lost_in_rings = lost_in_rings(base),
	};

	for (uint32_t i = 0; i < source->ring_count; i++) {
		const struct trace_ring *ring = &source->rings[i];

		counts.lost_unseen += ring->kernel_read > ring->taken ? ring->kernel_read - ring->taken : 0;
	}
	if (source->damaged_pages > counts.lost_unseen) /* each damaged page lost at least one event */
		counts.lost_unseen = source->damaged_pages;
	counts.lost_unseen +=
		source->damaged_events; /* not in the difference, because ring->taken counts them */
	counts.events =
		counts.probe_events + counts.retransmit_events + counts.lost_in_rings + counts.lost_unseen;
	return counts;
}

static bool report_losses(const struct source *base)
{
	struct source_counts counts = count(base);

	if (counts.lost_in_rings)
		complain("%" PRIu64 " of %" PRIu64
			 " events found no room in the rings: give a larger --ring-mib",
			 counts.lost_in_rings, counts.events);
	if (counts.lost_unseen)
		complain("%" PRIu64 " of %" PRIu64 " events could not be read (%" PRIu64
			 " events and %" PRIu64
			 " pages cannot be decoded): this program does not know this kernel's ring; use "
			 "--source bpf",
			 counts.lost_unseen, counts.events, base->tracefs.damaged_events,
			 base->tracefs.damaged_pages);
	return counts.lost_in_rings || counts.lost_unseen;
}

static void print_unknown(FILE *file, const char *name, uint64_t unknown)
{
	const char *comma = "";

	fprintf(file, ",\n \"%s\":[", name);
	for (uint32_t number = 0; number < TCP_FIELDS; number++) {
		if (unknown >> number & 1) {
			fprintf(file, "%s\"%s\"", comma, tcp_field_name(number));
			comma = ",";
		}
	}
	fputc(']', file);
}

static void print(const struct source *base, FILE *file)
{
	const struct tracefs_source *source = &base->tracefs;
	const char *group = source->custom ? "bufferscope" : "tcp";

	fprintf(file, ",\"lost_per_cpu\":[");
	for (uint32_t i = 0; i < source->ring_count; i++)
		fprintf(file, "%s%" PRIu64, i ? "," : "", ring_lost(&source->rings[i]));
	fprintf(file, "],\"retransmit_failures\":%" PRIu64, source->retransmit_failures);
	if (source->custom) /* the kernel's filter drops events of other sockets without counting them */
		fprintf(file, ",\"other_sockets\":null");
	else
		fprintf(file, ",\"other_sockets\":%" PRIu64, source->other_sockets);
	fprintf(file, ",\"damaged_events\":%" PRIu64 ",\"damaged_pages\":%" PRIu64, source->damaged_events,
		source->damaged_pages);
	fprintf(file, ",\n \"source\":\"tracefs\",\"rings\":%" PRIu32 ",\"ring_bytes\":%" PRIu64,
		source->ring_count, source->ring_bytes);
	fprintf(file, ",\"tracepoints\":[\"%s:tcp_probe\",\"%s:tcp_retransmit_skb\"]", group, group);
	print_unknown(file, "unknown_fields", source->decoder.kind[0].unknown_fields);
	print_unknown(file, "retransmit_unknown_fields", source->decoder.kind[1].unknown_fields);
}

/* Beginning and end ------------------------------------------------------------------------------------------------ */

static int start(struct source *base)
{
	for (int i = 0; i < 2; i++) {
		if (write(base->tracefs.enable[i], "1", 1) < 0) {
			int err = -errno;

			complain("enabling the trace events: %s", strerror(-err));
			return err;
		}
	}
	return 0;
}

static void stop(struct source *base)
{
	const struct timespec settle = {.tv_nsec = SETTLE_NS};

	for (int i = 0; i < 2; i++)
		if (write(base->tracefs.enable[i], "0", 1) < 0)
			complain("disabling the trace events: %s", strerror(errno));
	nanosleep(&settle, NULL);
	for (uint32_t i = 0; i < base->tracefs.ring_count; i++)
		read_stats(&base->tracefs.rings[i]);
}

static uint64_t unread(const struct source *base, uint64_t taken)
{
	uint64_t entries = 0;

	(void)taken;
	for (uint32_t i = 0; i < base->tracefs.ring_count; i++)
		entries += base->tracefs.rings[i].entries;
	return entries;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

static int close_source(struct source *base)
{
	struct tracefs_source *source = &base->tracefs;
	int err;

	for (int i = 0; i < 2; i++)
		close_fd(source->enable[i]);
	for (uint32_t i = 0; i < source->ring_count; i++) {
		close_fd(source->rings[i].pages);
		close_fd(source->rings[i].stats);
	}
	free(source->rings);
	free(source->page);
	source->rings = NULL;
	source->page = NULL;
	source->ring_count = 0;
	err = instance_remove(&source->instance);
	return err;
}

const struct source_operations tracefs_source = {
	.start = start,
	.read = read_rings,
	.count = count,
	.lost_in_rings = lost_in_rings,
	.stop = stop,
	.unread = unread,
	.report_losses = report_losses,
	.print = print,
	.close = close_source,
};
