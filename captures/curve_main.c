// SPDX-License-Identifier: MIT
// queue_curve: arrivals on stdin through tail-drop queues of several lengths, all in one pass; on stdout a line of JSON
// for each.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "input.h"
#include "lib/options.h"
#include "lib/report.h"

enum { MOST_QUEUES = 256, MOST_LIMIT = 1 << 24, OCTAVES = 48, STEPS = 64, CELLS = OCTAVES * STEPS };

#define NS 1000000000u

const char *const program_name = "queue_curve";

static const char help_text[] =
	"queue_curve --rate BPS --limits N,N,... [--from NS] [--until NS] <ARRIVALS >CURVE\n"
	"\n"
	"An arrival is 16 bytes, little-endian: its time in ns, and its bytes on the link. "
	"Arrivals ascend.\n"
	"\n"
	"  --rate BPS       rate of the link\n"
	"  --limits N,...   lengths of queues in packets: one arrives at that depth, and is "
	"dropped\n"
	"  --from NS        counts what arrives and leaves from then on\n"
	"  --until NS       and before that\n"
	"\n"
	"Exit status: 0 done; 1 wrong options, or no memory; 2 the arrivals end within one.\n";

struct queue {
	uint64_t limit;
	uint64_t *left_ns; /* when each packet in the queue will have left: a ring of `limit` */
	uint64_t first, depth;
	uint64_t free_ns,
		spare; /* the end of the last transmission, and its fraction of a ns, times the rate */
	uint64_t arrivals, drops, dropped_bytes, waited, busy_ns, most_ns;
	double sum_ns;
	uint64_t cells[CELLS]; /* delays: STEPS of each octave */
};

struct settings {
	uint64_t rate_bps, from_ns, until_ns;
};

/* Delays below STEPS have a cell each. */
static unsigned int cell_of(uint64_t ns)
{
	unsigned int octave, cell;

	if (ns < STEPS)
		return (unsigned int)ns;
	octave = 63u - (unsigned int)__builtin_clzll(ns) - 6; /* log2(STEPS) */
	cell = (octave + 1) * STEPS + (unsigned int)(ns >> octave) - STEPS;
	return cell < CELLS ? cell : CELLS - 1;
}

/* The middle of a cell. */
static double ns_of(unsigned int cell)
{
	unsigned int octave = cell / STEPS;

	return octave ? ((double)(cell % STEPS + STEPS) + 0.5) * (double)(1ull << (octave - 1)) : cell;
}

static uint64_t overlap(const struct settings *settings, uint64_t begin_ns, uint64_t end_ns)
{
	begin_ns = begin_ns > settings->from_ns ? begin_ns : settings->from_ns;
	end_ns = end_ns < settings->until_ns ? end_ns : settings->until_ns;
	return end_ns > begin_ns ? end_ns - begin_ns : 0;
}

/* As the switch's core: a transmission takes bits / rate, in integer ns with the remainder carried until the link idles. */
static void arrive(struct queue *queue, const struct settings *settings, uint64_t now_ns, uint64_t bytes)
{
	bool counts = now_ns >= settings->from_ns && now_ns < settings->until_ns;
	uint64_t begin_ns = queue->free_ns, left_ns;
	unsigned __int128 work;

	while (queue->depth && queue->left_ns[queue->first] <= now_ns) {
		queue->first = queue->first + 1 == queue->limit ? 0 : queue->first + 1;
		queue->depth--;
	}
	queue->arrivals += counts;
	queue->waited += counts && queue->depth;
	if (queue->depth >= queue->limit) {
		queue->drops += counts;
		queue->dropped_bytes += counts ? bytes : 0;
		return;
	}
	if (now_ns > begin_ns) {
		begin_ns = now_ns;
		queue->spare = 0;
	}
	work = (unsigned __int128)bytes * 8 * NS + queue->spare;
	left_ns = begin_ns + (uint64_t)(work / settings->rate_bps);
	queue->spare = (uint64_t)(work % settings->rate_bps);
	queue->free_ns = left_ns;
	queue->busy_ns += overlap(settings, begin_ns, left_ns);
	queue->left_ns[queue->first + queue->depth < queue->limit
			       ? queue->first + queue->depth
			       : queue->first + queue->depth - queue->limit] = left_ns;
	queue->depth++;
	if (counts) {
		queue->cells[cell_of(left_ns - now_ns)]++;
		queue->sum_ns += (double)(left_ns - now_ns);
		queue->most_ns = left_ns - now_ns > queue->most_ns ? left_ns - now_ns : queue->most_ns;
	}
}

static double quantile(const struct queue *queue, double share)
{
	uint64_t count = queue->arrivals - queue->drops, seen = 0;

	for (unsigned int cell = 0; cell < CELLS; cell++) {
		seen += queue->cells[cell];
		if (count && (double)seen >= share * (double)count)
			return ns_of(cell);
	}
	return 0;
}

static void print(const struct queue *queue)
{
	uint64_t count = queue->arrivals - queue->drops;

	printf("{\"limit_packets\": %" PRIu64 ", \"arrivals\": %" PRIu64 ", \"drops\": %" PRIu64
	       ", \"dropped_bytes\": %" PRIu64 ", \"waited\": %" PRIu64 ", \"busy_ns\": %" PRIu64
	       ", \"delay_mean_ns\": %.0f, \"delay_p50_ns\": %.0f, \"delay_p99_ns\": %.0f, \"delay_max_ns\": "
	       "%" PRIu64 "}\n",
	       queue->limit, queue->arrivals, queue->drops, queue->dropped_bytes, queue->waited,
	       queue->busy_ns, count ? queue->sum_ns / (double)count : 0, quantile(queue, 0.5),
	       quantile(queue, 0.99), queue->most_ns);
}

/* Returns how many there are, or 0 after a line. */
static unsigned int read_limits(char *text, struct queue *queues)
{
	unsigned int count = 0;
	char *part, *rest = NULL;

	for (part = strtok_r(text, ",", &rest); part; part = strtok_r(NULL, ",", &rest), count++) {
		if (count == MOST_QUEUES) {
			complain("--limits has more than %u; allowed: fewer", MOST_QUEUES);
			return 0;
		}
		if (parse_number("--limits", part, 1, MOST_LIMIT, &queues[count].limit))
			return 0;
		queues[count].left_ns = malloc(queues[count].limit * sizeof(uint64_t));
		if (!queues[count].left_ns) {
			complain("no memory for a queue of %s packets", part);
			return 0;
		}
	}
	return count;
}

int main(int argc, char **argv)
{
	static struct queue queues[MOST_QUEUES];
	struct settings settings = {.until_ns = UINT64_MAX};
	const char *limits = NULL;
	const struct option_row rows[] = {
		OPTION_NEEDED_NUMBER("rate", &settings.rate_bps, 1, 1000000000000000),
		OPTION_NEEDED_TEXT("limits", "N,N,...", &limits),
		OPTION_NUMBER("from", &settings.from_ns, 0, INT64_MAX),
		OPTION_NUMBER("until", &settings.until_ns, 0, INT64_MAX),
		OPTIONS_END,
	};
	int err = options_read(rows, help_text, argc, argv);
	uint64_t arrival[2];
	const uint8_t *bytes;
	struct input input;
	unsigned int count;

	if (err)
		return err > 0 ? EXIT_SUCCESS : EXIT_REFUSED;
	count = read_limits((char *)limits, queues);
	if (!count || input_open(&input, STDIN_FILENO))
		return EXIT_REFUSED;
	while ((bytes = input_see(&input, sizeof(arrival)))) {
		memcpy(arrival, bytes, sizeof(arrival));
		input_take(&input, sizeof(arrival));
		for (unsigned int number = 0; number < count; number++)
			arrive(&queues[number], &settings, arrival[0], arrival[1]);
	}
	if (input.error || !input_ended(&input)) {
		complain("the arrivals end within one");
		return EXIT_INCOMPLETE;
	}
	for (unsigned int number = 0; number < count; number++)
		print(&queues[number]);
	return fclose(stdout) ? EXIT_INCOMPLETE : EXIT_SUCCESS;
}
