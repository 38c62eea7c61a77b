// SPDX-License-Identifier: MIT
// Inverse transforms of uniform numbers from xoshiro256** (Blackman, Vigna 2021, Scrambled linear pseudorandom number
// generators), seeded by splitmix64 as the authors recommend.
#include "schedule.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "../../lib/frames.h"
#include "../../lib/splitmix64.h"

static void seed(struct chance *chance, uint64_t seed, uint64_t stream)
{
	uint64_t state = seed;

	state = splitmix64(&state) + stream; /* similar seeds must give unrelated streams */
	for (int index = 0; index < 4; index++)
		chance->state[index] = splitmix64(&state);
}

static uint64_t rotate(uint64_t value, int bits)
{
	return value << bits | value >> (64 - bits);
}

static uint64_t draw(struct chance *chance)
{
	uint64_t *s = chance->state, result = rotate(s[1] * 5, 7) * 9, shifted = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= shifted;
	s[3] = rotate(s[3], 45);
	return result;
}

/* In [0, 1), a multiple of 2^-53. */
static double uniform(struct chance *chance)
{
	return (double)(draw(chance) >> 11) * 0x1p-53;
}

static double scale_bytes(const struct schedule_options *options)
{
	return (double)options->mtu_bytes / 4;
}

/* The mean size of the IP packets, by the distributions in schedule.h. */
static double mean_ip_bytes(const struct schedule_options *options)
{
	double weight_sum = 0, sum = 0, mtu = (double)options->mtu_bytes;

	if (options->sizes == SIZES_FIXED || options->sizes == SIZES_BURSTS)
		return mtu;
	if (options->sizes == SIZES_BIMODAL)
		return (LEAST_IP_BYTES + mtu) / 2;
	for (uint64_t bytes = LEAST_IP_BYTES; bytes <= options->mtu_bytes; bytes++) {
		double weight = exp(-(double)(bytes - LEAST_IP_BYTES) / scale_bytes(options));

		weight_sum += weight;
		sum += weight * (double)bytes;
	}
	return sum / weight_sum;
}

/* Number of slow-start bursts of a flow: FIRST_BURST packets, twice as many, ..., and the rest. */
static uint32_t bursts_of(uint64_t flow_packets)
{
	uint32_t bursts = 1;

	for (uint64_t size = FIRST_BURST; size < flow_packets; size *= 2) {
		flow_packets -= size;
		bursts++;
	}
	return bursts;
}

/* Number of packets of burst `index`; the first burst has index 0. */
static uint32_t burst_packets(uint64_t flow_packets, uint32_t index)
{
	uint64_t before = (uint64_t)FIRST_BURST * (((uint64_t)1 << index) - 1),
		 size = (uint64_t)FIRST_BURST << index;

	return (uint32_t)(flow_packets - before < size ? flow_packets - before : size);
}

static bool is_periodic(const struct schedule_options *options)
{
	return options->arrivals == ARRIVALS_PERIODIC || options->arrivals == ARRIVALS_JITTERED;
}

static bool is_even(const struct schedule *schedule)
{
	return schedule->spacing_ns >= schedule->even_ns;
}

static void draw_phase(struct schedule *schedule, struct periodic_flow *flow)
{
	flow->phase_ns =
		uniform(&schedule->times) * (is_even(schedule) ? schedule->even_ns : schedule->round_ns);
}

/* Keeps at least the spacing between the last packet of a round and the first packet of the next round. */
static void move_phase(struct schedule *schedule, struct periodic_flow *flow)
{
	double idle_ns = schedule->round_ns - (double)schedule->round_packets * schedule->spacing_ns;

	flow->phase_ns += (uniform(&schedule->times) - 0.5) * fmin(schedule->round_ns, 2 * idle_ns);
}

static bool is_before(const struct periodic_flow *one, const struct periodic_flow *other)
{
	return one->due_ns < other->due_ns || (one->due_ns == other->due_ns && one->flow < other->flow);
}

static void sift_down(struct periodic_flow *heap, uint64_t count, uint64_t at)
{
	struct periodic_flow moved = heap[at];

	for (uint64_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
		if (child + 1 < count && is_before(heap + child + 1, heap + child))
			child++;
		if (!is_before(heap + child, &moved))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = moved;
}

static int init_periodic(struct schedule *schedule, double packet_ns)
{
	const struct schedule_options *options = &schedule->options;
	double even_ns = schedule->mean_gap_ns * (double)options->flows;

	schedule->round_packets = options->round_packets ? options->round_packets : 1;
	schedule->round_ns = even_ns * (double)schedule->round_packets;
	schedule->spacing_ns =
		options->spacing_ppm ? packet_ns * (double)options->spacing_ppm / 1e6 : even_ns;
	if (schedule->spacing_ns >
	    even_ns * (1 + 1e-6)) /* the load and the spacing are rounded to millionths */
		return -EINVAL;
	schedule->even_ns = even_ns;
	schedule->spacing_ns = fmin(schedule->spacing_ns, even_ns);
	schedule->heap = calloc(options->flows, sizeof(*schedule->heap));
	if (!schedule->heap)
		return -ENOMEM;
	for (uint32_t flow = 0; flow < options->flows; flow++) {
		schedule->heap[flow].flow = flow;
		draw_phase(schedule, schedule->heap + flow);
		schedule->heap[flow].due_ns = schedule->heap[flow].phase_ns;
	}
	for (uint64_t at = options->flows / 2; at-- > 0;)
		sift_down(schedule->heap, options->flows, at);
	return 0;
}

static struct departure next_periodic(struct schedule *schedule)
{
	struct periodic_flow *flow = schedule->heap;
	struct departure next = {
		.due_ns = (uint64_t)flow->due_ns,
		.ip_bytes = (uint32_t)schedule->options.mtu_bytes,
		.flow = flow->flow,
	};

	if (++flow->sent == schedule->round_packets) {
		flow->sent = 0;
		flow->round_start_ns += schedule->round_ns;
		if (schedule->options.arrivals == ARRIVALS_JITTERED)
			(is_even(schedule) ? draw_phase : move_phase)(schedule, flow);
	}
	flow->due_ns = flow->round_start_ns + flow->phase_ns + (double)flow->sent * schedule->spacing_ns;
	sift_down(schedule->heap, schedule->options.flows, 0);
	return next;
}

int schedule_init(struct schedule *schedule, const struct schedule_options *options)
{
	double most = (double)(options->mtu_bytes - LEAST_IP_BYTES + 1);
	double wire_bits = (mean_ip_bytes(options) + ETHERNET_BYTES + WIRE_EXTRA_BYTES) * 8;

	if (options->sizes == SIZES_BURSTS)
		wire_bits *= (double)options->flow_packets / bursts_of(options->flow_packets);

	*schedule = (struct schedule){
		.options = *options,
		.mean_gap_ns =
			wire_bits * 1e9 * 1e6 / ((double)options->rate_bps * (double)options->load_ppm),
		.below = -expm1(-most / scale_bytes(options)),
	};
	seed(&schedule->times, options->seed, 1);
	seed(&schedule->lengths, options->seed, 2);
	seed(&schedule->flows, options->seed, 3);
	return is_periodic(options) ? init_periodic(schedule, wire_bits * 1e9 / (double)options->rate_bps)
				    : 0;
}

void schedule_destroy(struct schedule *schedule)
{
	free(schedule->heap);
	schedule->heap = NULL;
}

static uint32_t draw_bytes(struct schedule *schedule)
{
	const struct schedule_options *options = &schedule->options;
	uint32_t bytes, mtu = (uint32_t)options->mtu_bytes;

	if (options->sizes == SIZES_FIXED || options->sizes == SIZES_BURSTS)
		return mtu;
	if (options->sizes == SIZES_BIMODAL)
		return draw(&schedule->lengths) >> 63 ? mtu : LEAST_IP_BYTES;
	bytes = LEAST_IP_BYTES +
		(uint32_t)(-scale_bytes(options) * log1p(-uniform(&schedule->lengths) * schedule->below));
	return bytes < mtu ? bytes : mtu; /* rounding may give mtu + 1 */
}

static uint32_t draw_burst(struct schedule *schedule)
{
	uint64_t flow_packets = schedule->options.flow_packets;

	if (schedule->options.sizes != SIZES_BURSTS)
		return 1;
	return burst_packets(flow_packets, (uint32_t)(uniform(&schedule->lengths) * bursts_of(flow_packets)));
}

static struct departure next_arrival(struct schedule *schedule)
{
	struct departure next = {.ip_bytes = draw_bytes(schedule)};
	uint64_t number = schedule->arrivals++;

	if (is_periodic(&schedule->options))
		return next_periodic(schedule);
	if (schedule->options.arrivals == ARRIVALS_CBR) {
		next.due_ns = (uint64_t)(schedule->mean_gap_ns * (double)number);
		next.flow = (uint32_t)(number % schedule->options.flows);
		return next;
	}
	schedule->gap_sum_ns -= schedule->mean_gap_ns * log1p(-uniform(&schedule->times));
	next.due_ns = (uint64_t)schedule->gap_sum_ns;
	next.flow = (uint32_t)(uniform(&schedule->flows) * (double)schedule->options.flows);
	return next;
}

struct departure schedule_next(struct schedule *schedule)
{
	if (!schedule->left) {
		schedule->latest = next_arrival(schedule);
		schedule->left = draw_burst(schedule);
	}
	schedule->left--;
	schedule->count++;
	return schedule->latest;
}
