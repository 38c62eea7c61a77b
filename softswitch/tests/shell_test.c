/* SPDX-License-Identifier: MIT
 * Tests the code around the core: lateness, gaps, requests of the executor, refused outputs, clock offset.
 * test_fuzz.py builds it with sanitizers: `make PIPELINE=test SANITIZE=1 shell_test`.
 */
#include <linux/if_packet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../../lib/report.h"
#include "../shell/shell.h"

const char *const program_name = "shell_test";

#define check(condition)                                                                                     \
	do {                                                                                                 \
		if (!(condition)) {                                                                          \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                      \
			exit(1);                                                                             \
		}                                                                                            \
	} while (0)

static uint32_t only_bucket(uint64_t late_ns)
{
	static struct lateness lateness;
	uint32_t last = 0;

	lateness_reset(&lateness);
	lateness_count(&lateness, 1000, 1000 + late_ns, false);
	for (uint32_t bucket = 0; bucket < LATENESS_BUCKETS; bucket++)
		if (lateness.buckets[bucket])
			last = bucket;
	return last;
}

static void test_buckets__hold_what_is_between_their_edges(void)
{
	for (uint32_t bucket = 1; bucket < LATENESS_BUCKETS; bucket++) {
		uint64_t low_ns = lateness_edge_ns(bucket - 1) + 1;
		uint64_t high_ns = lateness_edge_ns(bucket);

		check(high_ns >= low_ns);
		check(only_bucket(low_ns) == bucket && only_bucket(high_ns) == bucket);
		check((high_ns - low_ns + 1) * 100 <= 3 * low_ns || high_ns == low_ns);
	}
	check(only_bucket(0) == 0 && only_bucket(UINT64_MAX / 2) == LATENESS_BUCKETS - 1);
}

static void test_gaps__count_only_back_to_back_frames(void)
{
	static struct lateness lateness;

	lateness_reset(&lateness);
	lateness_count(&lateness, 1000, 1500, true);  /* nothing before it */
	lateness_count(&lateness, 2000, 2599, true);  /* gap 1099 for 1000: within 10 % */
	lateness_count(&lateness, 3000, 3700, true);  /* 1101: not */
	lateness_count(&lateness, 4000, 4589, true);  /* 889: not */
	lateness_count(&lateness, 9000, 9000, false); /* after a pause */
	lateness_count(&lateness, 9000, 9001, true);  /* due at the same ns: no ideal gap */
	check(lateness.departures == 6 && lateness.gap_frames == 3 && lateness.gap_errors == 2);
	check(lateness.gap_error_max_ns == 111);
}

static void test_spans__go_from_the_first_frame_to_the_last(void)
{
	static struct lateness lateness;

	lateness_reset(&lateness);
	lateness_count(&lateness, 1000, 1500, false);
	check(lateness.virtual_span_ns == 0 && lateness.real_span_ns == 0);
	/* Many short busy periods, each with a late last frame: the lateness does not add up in the real span. */
	for (uint64_t period_ns = 10000; period_ns <= 1000000; period_ns += 10000) {
		lateness_count(&lateness, period_ns, period_ns + 500, false);
		lateness_count(&lateness, period_ns + 1000, period_ns + 1900, true);
	}
	check(lateness.virtual_span_ns == 1000000 && lateness.real_span_ns == 1000400);
	lateness_reset(&lateness);
	check(lateness.virtual_span_ns == 0 && lateness.real_span_ns == 0);
	/* A frame at time 0 counts. If a shorter delay makes a later frame due before the first, the span is 0. */
	lateness_count(&lateness, 5000, 0, false);
	lateness_count(&lateness, 4000, 7000, false);
	check(lateness.virtual_span_ns == 0 && lateness.real_span_ns == 7000);
}

static void measure(struct executor *executor)
{
	executor->mono_ns = 77;
	executor->realtime_minus_mono_ns = INT64_MIN;
}

static const char *answer(struct executor *executor, const char *request, size_t request_bytes)
{
	static char reply[EXECUTOR_REPLY_BYTES];

	check(executor_answer(executor, request, request_bytes, reply, sizeof(reply)) == strlen(reply));
	return reply;
}

/* A separate buffer for each reply, so that the address sanitizer detects a write beyond its end. */
static void test_executor__cuts_a_reply_once(struct executor *executor)
{
	static const char *const requests[] = {"program", "stats"};
	const char *cut_line = "\nerror reply cut: ask for less at once\n";

	for (int index = 0; index < 2; index++) {
		size_t whole_bytes = strlen(answer(executor, requests[index], strlen(requests[index]))) + 1;

		for (size_t bytes = 64; bytes < whole_bytes + 64; bytes += bytes < 4096 ? 1 : 997) {
			char *reply = malloc(bytes);
			size_t used = executor_answer(executor, requests[index], strlen(requests[index]),
						      reply, bytes);
			const char *cut = strstr(reply, cut_line);

			check(used < bytes && strlen(reply) == used);
			check(cut ? cut + strlen(cut_line) == reply + used : bytes >= whole_bytes);
			free(reply);
		}
	}
}

static void test_executor__adds_to_what_the_core_says(void)
{
	static struct executor_port ports[EXECUTOR_MAX_PORTS];
	struct core_config config = {.packets = 16, .frame_bytes = 256, .flows = 1};
	void *memory = aligned_alloc(64, (core_memory_bytes(&config) + 63) / 64 * 64);
	struct executor executor = {
		.name = "test",
		.core = core_create(memory, &config),
		.ports = ports,
		.port_count = EXECUTOR_MAX_PORTS,
		.measure = measure,
	};
	static char request[EXECUTOR_REQUEST_BYTES + 2];

	for (uint32_t index = 0; index < EXECUTOR_MAX_PORTS; index++) {
		ports[index].number = (uint16_t)(index + 1);
		core_attach_port(executor.core, ports[index].number);
	}
	lateness_count(&ports[1].lateness, 1000, 1003, false);
	ports[1].tx_errors = UINT64_MAX;
	check(strstr(answer(&executor, "stats", 5), "\nport.2.tx_errors 18446744073709551615\n"));
	check(strstr(answer(&executor, "stats", 5), "\ndepartures.64 0\n"));
	check(strstr(answer(&executor, "stats", 5), "\nrealtime_minus_mono_ns -9223372036854775808\n"));
	check(!strcmp(answer(&executor, "lateness 2", 10), "ok\n3 1\n"));
	check(!strcmp(answer(&executor, "lateness reset", 14), "ok\n"));
	check(!strcmp(answer(&executor, "lateness 2", 10), "ok\n"));
	memset(request, 'x', sizeof(request) - 1);
	check(!strcmp(answer(&executor, request, EXECUTOR_REQUEST_BYTES + 1),
		      "error request longer than 4096 bytes\n"));
	test_executor__cuts_a_reply_once(&executor);
	free(memory);
}

enum {
	PACKETS = 4096,
	FRAME_BYTES = 100,
	ROOMY = 2, /* ports */
	TIGHT = 3,
};

/* A shell whose ports 2 and 3 send into sockets. Port 2's socket has room for all frames, port 3's socket only for a
 * few.
 */
struct rig {
	struct shell shell;
	struct port_io ports[2];
	struct executor_port counters[2];
	int far_ends[2];
	uint64_t now_ns;
	void *memory;
};

static void rig_open(struct rig *rig)
{
	struct core_config config = {.packets = PACKETS, .frame_bytes = 256, .flows = 1};
	int send_bytes[] = {8 << 20, 4096};

	memset(rig, 0, sizeof(*rig));
	rig->memory = aligned_alloc(64, (core_memory_bytes(&config) + 63) / 64 * 64);
	rig->shell = (struct shell){
		.core = core_create(rig->memory, &config), .ports = rig->ports, .port_count = 2};
	check(!outputs_open(&rig->shell.backlog, PACKETS));
	for (int index = 0; index < 2; index++) {
		struct port_io *port = &rig->ports[index];
		int ends[2];

		check(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends));
		check(!setsockopt(ends[0], SOL_SOCKET, SO_SNDBUFFORCE, &send_bytes[index], sizeof(int)) ||
		      !setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &send_bytes[index], sizeof(int)));
		check(!transmit_start(&port->transmit, &rig->counters[index], ends[0]));
		port->number = (uint16_t)(ROOMY + index);
		rig->shell.by_number[port->number] = port;
		rig->far_ends[index] = ends[1];
		core_attach_port(rig->shell.core, port->number);
	}
}

static void rig_close(struct rig *rig)
{
	char reply[8192];

	core_control(rig->shell.core, "stats", reply, sizeof(reply));
	check(strstr(reply, "\npackets_used 0\n"));
	for (int index = 0; index < 2; index++) {
		transmit_close(&rig->ports[index].transmit);
		close(rig->far_ends[index]);
	}
	outputs_close(&rig->shell.backlog);
	free(rig->memory);
}

/* Sends numbered frames to both ports. */
static void rig_forward(struct rig *rig, uint32_t first, uint32_t count)
{
	for (uint32_t number = first; number < first + count; number++)
		for (uint8_t port = ROOMY; port <= TIGHT; port++) {
			uint8_t frame[FRAME_BYTES] = {2, 0xbf, 0, 0, 0, port};

			memcpy(frame + 20, &number, sizeof(number));
			check(!core_receive(rig->shell.core, ++rig->now_ns, ROOMY, frame, sizeof(frame)));
		}
	core_advance(rig->shell.core, rig->now_ns);
	outputs_send_due(&rig->shell, CORE_NEVER_NS - 1);
}

/* Reads all frames at the far end of a port and checks their order. Returns the number of the next frame. */
static uint32_t rig_drain(struct rig *rig, int index, uint32_t next)
{
	uint8_t frame[256];
	uint32_t number;

	while (recv(rig->far_ends[index], frame, sizeof(frame), 0) == FRAME_BYTES) {
		memcpy(&number, frame + 20, sizeof(number));
		check(number == next++);
	}
	return next;
}

/* Retries until every frame is sent or given up. */
static void rig_retry(struct rig *rig)
{
	uint64_t end_ns = mono_now_ns() + 60000000000;

	while (outputs_retry_ns(&rig->shell) != CORE_NEVER_NS && mono_now_ns() < end_ns)
		outputs_send_due(&rig->shell, CORE_NEVER_NS - 1);
}

static void test_outputs__a_refused_port_holds_back_its_own_frames_alone(void)
{
	static struct rig rig;
	uint32_t roomy = 0, tight = 0;

	rig_open(&rig);
	for (uint32_t first = 0; first < 1000; first += 100) {
		rig_forward(&rig, first, 100);
		roomy = rig_drain(&rig, 0, roomy);
		check(roomy == first + 100);
	}
	check(rig.counters[0].tx_retries == 0 && rig.counters[0].tx_waiting_max == 0);
	check(rig.counters[1].tx_frames < 100 && rig.counters[1].tx_retries > 0);
	check(rig.counters[1].tx_waiting_max == 1000 - rig.counters[1].tx_frames);
	check(outputs_retry_ns(&rig.shell) != CORE_NEVER_NS && !outputs_are_congested(&rig.shell));
	while (tight < 1000) {
		tight = rig_drain(&rig, 1, tight);
		outputs_send_due(&rig.shell, CORE_NEVER_NS - 1);
	}
	check(rig.counters[1].tx_frames == 1000 && rig.counters[1].tx_errors == 0);
	check(outputs_retry_ns(&rig.shell) == CORE_NEVER_NS);
	rig_close(&rig);
}

static void test_outputs__reading_stops_while_half_of_the_pool_waits(void)
{
	static struct rig rig;
	uint32_t number = 0;

	rig_open(&rig);
	/* Large steps first: each step may retry a frame, and a frame is given up after 500 retries. */
	for (; number < PACKETS / 2 - 100; number += 100) {
		rig_forward(&rig, number, 100);
		check(rig_drain(&rig, 0, number) == number + 100);
	}
	while (!outputs_are_congested(&rig.shell) && number < PACKETS) {
		rig_forward(&rig, number++, 1);
		check(rig_drain(&rig, 0, number - 1) == number);
	}
	check(rig.shell.backlog.held == PACKETS / 2 + 1);
	check(rig.counters[0].tx_frames == number);
	rig_retry(&rig); /* nobody reads port 3: its frames are given up, each counted */
	check(!outputs_are_congested(&rig.shell) && rig.shell.backlog.held == 0);
	check(rig.counters[1].tx_frames + rig.counters[1].tx_errors == number);
	check(rig.counters[1].tx_retries >= 500 && rig.counters[0].tx_errors == 0);
	rig_close(&rig);
}

static void test_clocks__offset_narrows_until_a_sample_excludes_it_and_sees_a_step(void)
{
	static const int64_t samples[][4] = {
		/* mono before, realtime, mono after; the offset then */
		{0, 1000, 100, 950},   {200, 1150, 300, 950},	 {400, 1330, 420, 930},
		{500, 1490, 600, 930}, {1000, 5000, 1020, 3990}, {2000, 5985, 2020, 3985},
	};
	struct clock_offset clock = {0};

	for (int index = 0; index < 6; index++) {
		bool stepped =
			clock_offset_narrow(&clock, samples[index][0], samples[index][1], samples[index][2]);

		check(stepped == (index == 4) && clock.realtime_minus_mono_ns == samples[index][3]);
	}
	check(clock_offset_first_ns(&clock) == 930 && clock.samples == 6 && clock.steps == 1);
	check(clock.max_step_ns == 3060);
}

static void test_clocks__stamps_become_monotonic(void)
{
	struct tpacket2_hdr head = {.tp_status = TP_STATUS_USER};
	struct ring ring = {.map = (uint8_t *)&head, .slot_bytes = sizeof(head), .slots = 1};
	struct clock_offset clock;
	struct timespec realtime;
	uint64_t before_ns, after_ns;

	clock_offset_open(&clock);
	before_ns = mono_now_ns();
	clock_gettime(CLOCK_REALTIME, &realtime);
	after_ns = mono_now_ns();
	head.tp_sec = (uint32_t)realtime.tv_sec;
	head.tp_nsec = (uint32_t)realtime.tv_nsec;
	check(ring_peek(&ring, &clock));
	check(ring.head_ns + 100000 > before_ns && ring.head_ns < after_ns + 100000);
	check(clock.steps == 0);
}

int main(void)
{
	test_buckets__hold_what_is_between_their_edges();
	test_gaps__count_only_back_to_back_frames();
	test_spans__go_from_the_first_frame_to_the_last();
	test_executor__adds_to_what_the_core_says();
	test_outputs__a_refused_port_holds_back_its_own_frames_alone();
	test_outputs__reading_stops_while_half_of_the_pool_waits();
	test_clocks__offset_narrows_until_a_sample_excludes_it_and_sees_a_step();
	test_clocks__stamps_become_monotonic();
	return 0;
}
