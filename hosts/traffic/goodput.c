// SPDX-License-Identifier: MIT
// The flows that received data in the open interval are in a list, so idle flows cost nothing.
#include "goodput.h"

#include <inttypes.h>
#include <string.h>

#include "../../lib/clock_ns.h"
#include "../../wire/goodput_record.h"

enum { FLUSH_NS = 1000000000 }; /* one block per second: a crash loses about 1 s */

int goodput_open(struct goodput *goodput, struct events *events, uint64_t interval_ns, const char *path)
{
	*goodput = (struct goodput){
		.events = events, .interval_ns = interval_ns, .flushed_mono_ns = mono_now_ns()};
	goodput->last = &goodput->first;
	return block_writer_open(&goodput->writer, path, BLOCK_GOODPUT, GOODPUT_RECORD_VERSION,
				 GOODPUT_RECORD_BYTES);
}

static void begin(struct goodput *goodput, uint64_t now_ns)
{
	goodput->interval_mono_ns = now_ns - now_ns % goodput->interval_ns;
	events_arm(goodput->events, goodput->interval_mono_ns + goodput->interval_ns);
}

void goodput_count(struct goodput *goodput, struct meter *meter, uint64_t bytes, uint32_t reads)
{
	if (!goodput->interval_mono_ns)
		begin(goodput, mono_now_ns());
	if (!meter->counted) {
		meter->counted = true;
		meter->next = NULL;
		*goodput->last = meter;
		goodput->last = &meter->next;
	}
	meter->interval_bytes += bytes;
	meter->interval_reads += reads;
	meter->total_bytes += bytes;
	meter->total_reads += reads;
}

static void write_interval(struct goodput *goodput)
{
	for (struct meter *meter = goodput->first; meter; meter = meter->next) {
		const struct goodput_record record = {
			.interval_mono_ns = goodput->interval_mono_ns,
			.payload_bytes = meter->interval_bytes,
			.reads = meter->interval_reads,
			.src_port = meter->src_port,
			.dst_port = meter->dst_port,
		};

		memcpy(block_writer_slot(&goodput->writer), &record, sizeof(record));
		block_writer_added(&goodput->writer);
		meter->interval_bytes = 0;
		meter->interval_reads = 0;
		meter->counted = false;
	}
	goodput->first = NULL;
	goodput->last = &goodput->first;
}

void goodput_timer(struct goodput *goodput)
{
	uint64_t now_ns = mono_now_ns(), due_ns = goodput->interval_mono_ns + goodput->interval_ns;
	bool idle = !goodput->first;

	if (now_ns < due_ns)
		now_ns = due_ns; /* the clock is coarser than the timer */
	if (now_ns - due_ns > goodput->lateness_max_ns)
		goodput->lateness_max_ns = now_ns - due_ns;
	if (now_ns - due_ns >= goodput->interval_ns)
		goodput->late_intervals++;
	write_interval(goodput);
	if (now_ns - goodput->flushed_mono_ns >= FLUSH_NS) {
		block_writer_flush(&goodput->writer);
		goodput->flushed_mono_ns = now_ns;
	}
	if (idle)
		goodput->interval_mono_ns = 0;
	else
		begin(goodput, now_ns);
}

int goodput_close(struct goodput *goodput)
{
	write_interval(goodput);
	return block_writer_close(&goodput->writer);
}

void goodput_print(FILE *file, const struct goodput *goodput)
{
	fprintf(file,
		"\"interval_ns\":%" PRIu64 ",\"late_intervals\":%" PRIu64
		",\"interval_lateness_max_ns\":%" PRIu64 ",\n \"records_stored\":%" PRIu64
		",\"records_unwritten\":%" PRIu64 ",\"write_errors\":%" PRIu64,
		goodput->interval_ns, goodput->late_intervals, goodput->lateness_max_ns,
		goodput->writer.stored, goodput->writer.unwritten, goodput->writer.write_errors);
}
