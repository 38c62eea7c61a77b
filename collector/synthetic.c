// SPDX-License-Identifier: MIT
// Fills blocks with sample postcards, and waits while no buffer is free, so the total time is the time of
// storing. The time to the page cache and the time to the disk are reported separately.
#include "synthetic.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/clock_ns.h"
#include "lib/report.h"
#include "sample.h"
#include "writer.h"

static void fill(struct block *block, uint64_t first, uint64_t count)
{
	uint64_t now_ns = mono_now_ns();
	uint8_t card[POSTCARD_BYTES];
	uint8_t *place;

	sample_encode(card, 0, now_ns);
	block->first_record = first;
	block->kernel_drops = 0;
	block->realtime_minus_mono_ns = 0;
	for (; block->records < count; block->records++) {
		place = block_place(block);
		put_le(&place, now_ns, BLOCK_STAMP_BYTES);
		sample_renumber(card, (uint32_t)(first + block->records), now_ns);
		memcpy(place, card, sizeof(card));
	}
}

static void wait_a_little(void)
{
	const struct timespec pause = {.tv_nsec = 200000};

	nanosleep(&pause, NULL);
}

static void put_result(uint64_t count, const struct writer_counts *counts, uint64_t stored_ns,
		       uint64_t synced_ns)
{
	printf("{\"postcards\": %" PRIu64 ", \"stored\": %" PRIu64 ", \"bytes\": %" PRIu64
	       ", \"write_errors\": %" PRIu64
	       ", \"seconds\": %.6f, \"seconds_to_disk\": %.6f, \"postcards_per_s\": %.0f"
	       ", \"postcards_per_s_to_disk\": %.0f}\n",
	       count, counts->stored, counts->bytes, counts->write_errors, (double)stored_ns * 1e-9,
	       (double)synced_ns * 1e-9, (double)counts->stored * 1e9 / (double)stored_ns,
	       (double)counts->stored * 1e9 / (double)synced_ns);
}

int synthetic_run(const struct options *options)
{
	uint64_t count = options->synthetic_count;
	uint64_t start_ns, stored_ns, here;
	struct writer writer;
	struct block *block;
	int err;

	err = writer_open(&writer, options->output, (unsigned int)options->buffers);
	if (err)
		return EXIT_REFUSED;
	start_ns = mono_now_ns();
	for (uint64_t first = 0; first < count; first += here) {
		while (!(block = writer_take(&writer)))
			wait_a_little();
		here = count - first < BLOCK_RECORDS ? count - first : BLOCK_RECORDS;
		fill(block, first, here);
		writer_give(&writer, block);
	}
	/* Waits until every postcard is stored or lost. */
	for (struct writer_counts now = writer_counts(&writer); now.stored + now.lost < count;
	     now = writer_counts(&writer))
		wait_a_little();
	stored_ns = mono_now_ns() - start_ns;
	err = writer_close(&writer);
	put_result(count, &writer.counts, stored_ns, mono_now_ns() - start_ns);
	return err ? EXIT_INCOMPLETE : 0;
}
