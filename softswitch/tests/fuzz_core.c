/* SPDX-License-Identifier: MIT
 * Passes random requests and random frames to the core; build it with sanitizers. Invariants: replies are well formed,
 * a refused request adds no flows, the queue registers are exact, and every packet returns to the pool.
 * usage: fuzz_core SEED ROUNDS [REQUEST]...    (requests that fit the program)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../runtime/core_state.h"

#define check(condition)                                                                                     \
	do {                                                                                                 \
		if (!(condition)) {                                                                          \
			fprintf(stderr, "%s:%d: %s\nafter: %s\n", __FILE__, __LINE__, #condition, request);  \
			abort();                                                                             \
		}                                                                                            \
	} while (0)

enum {
	PACKETS = 64,
	FRAME_BYTES = 512,
};

static char request[4097];
static uint64_t random_state;
static uint64_t registers_checked;

static uint64_t draw(uint64_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % below;
}

/* Words of requests, valid and invalid; two spaces enclose the empty word. split_words() cuts them. */
static char vocabulary[] =
	"program table list set delete default dump register read write counter reset mirror "
	"truncate port show rate delay access limit_packets limit_bytes flow link any clear ; "
	"stats lateness test = priority tcp udp 6 17 0 1 2 3 511 512 65535 65536 4294967296 "
	"18446744073709551615 18446744073709551616 -1 0x 0xff 0xfffffffffffffffff "
	"02:bf:00:00:00:01 0x02bf00000001 10.0.0.1 10.0.0.256 10.0.0 :: ::1 1::2::3 fd77::1 "
	"::ffff:1.2.3.4 1:2:3:4:5:6:7:8 1:2:3:4:5:6:7:8:9 1:2:3:4:5:6:7:: : ::: 1&&&1 &&& 1/8 / "
	"forward queue_policy postcards collector tail_drop ecn egress_threshold unwatched "
	"report silent send_to send_to_collector arrivals arrival_drops admitted_packets "
	"queue_packets queue_bytes queue_registers_filled ingress_card_seq random seed  \n "
	"schedule steps opportunities start loss good bad to_bad to_good jitter "
	"watch sender collector switch_id switch_mac multicast recirculation group meter all queue queues "
	"scheduler fifo strict drr bmv2 quantum "
	"\x01\x7f\xff %s%n 1000 200000000 1e9 1_000";
static const char *words[126];
static size_t word_count;

static void split_words(void)
{
	for (char *at = vocabulary; at; word_count++) {
		words[word_count] = at;
		at = strchr(at, ' ');
		if (at)
			*at++ = 0;
	}
}

/* Complete requests. Most set up state for later requests and frames; the others read state, or are refused. */
static const char *const whole[] = {
	"mirror set 1 3 truncate 128",
	"port set 2 rate 1000000000 delay 1000",
	"port set 1 access 1000000",
	"port set 2 limit_packets 5",
	"table set queue_policy 2 = tail_drop 3 0",
	"table set postcards 2 = report 1 1",
	"table set forward 0x02bf00000002 = send_to 2",
	"table dump forward",
	"table list",
	"stats",
	"port show 2",
	"flow set 10.0.0.1 10.0.0.2 udp 1 2 delay 5 access 1000000",
	"flow set 10.0.0.1 10.0.0.2 udp 1 2 delay 7 ; ::1 fd77::1 tcp 3 65535 access 1000 ; 10.0.0.1 "
	"10.0.0.2 6 1 2",
	"counter read arrivals",
	"port set 2 limit_bytes 1000",
	"port set 2 limit_packets 0 limit_bytes 0",
	"register read admitted_packets 0 512",
	"register write queue_packets 2 77",
	"register write queue_bytes 2 77",
	"register write queue_registers_filled 0 0",
	"register write queue_registers_filled 0 1",
	"test mirror 7",
	"flow set 10.0.0.1 any delay 3 access 1000000 ; fd77::1 any link 64 ; 10.0.0.2 any link 1",
	"link set 1 access 1000000",
	"link set 1024 access 1000",
	"flow clear",
	"mirror delete 1",
	"program",
	"schedule steps 2 0 1000000",
	"schedule steps 2 0 1000000000 5000 0 700000 2000000000",
	"schedule steps 2 900000 0 1000000 1000000 2000000 1000000000",
	"schedule opportunities 2 1000000 1 2000000 3",
	"schedule opportunities 1 1000 1",
	"schedule start 2 100000000000",
	"schedule start 2 1000000000000",
	"schedule start 1 1000000000000",
	"schedule clear",
	"loss 2 seed 1 good 1000000000000000000 bad 18446744073709551615 to_bad 1 to_good 5",
	"loss 2 seed 1",
	"jitter 2 7 0 1000 2000000",
	"jitter 3 8 5 5",
	"jitter 2 7",
	"queue scheduler 2 strict",
	"queue scheduler 2 drr queues 3",
	"queue scheduler 2 bmv2 queues 2",
	"queue scheduler 2 fifo",
	"queue scheduler 3 drr",
	"queue set 2 all limit_packets 4 limit_bytes 900 quantum 64 rate 500000",
	"queue set 2 1 limit_packets 0 rate 3",
	"queue show 2",
	"watch set 2 sender 1 collector 3 switch_id 7",
	"watch set 2 sender 1 collector 3 switch_id 7",
	"watch show",
	"watch clear",
};
enum { WHOLE = sizeof(whole) / sizeof(whole[0]) };
static char **more;
static uint64_t more_count;

static void make_request(void)
{
	size_t used = 0;
	uint64_t count = draw(14), number = draw(WHOLE + more_count);

	request[0] = 0;
	if (!draw(3)) {
		strcpy(request, number < WHOLE ? whole[number] : more[number - WHOLE]);
		used = strlen(request);
		count = 0;
	}
	for (uint64_t index = 0; index < count; index++) {
		const char *word = words[draw(word_count)];

		used += (size_t)snprintf(request + used, sizeof(request) - used, "%s%s", used ? " " : "",
					 word);
	}
	if (!draw(10))
		for (used = 0; used < draw(4096); used++)
			request[used] = (char)(1 + draw(255));
	request[used] = 0;
	while (used && !draw(4))
		request[draw(used)] = (char)(1 + draw(255));
}

/* A request with up to 89 flows, nearly all new; often cut or garbled anywhere. */
static void make_flows(void)
{
	static const char *const forms[] = {
		"%s10.0.%d.%d ::1 tcp %d 5201 delay %d", "%s10.0.%d.%d ::1 tcp %d 5201 delay %d",
		"%s10.0.%d.%d ::1 tcp %d 5201 delay %d", "%s10.0.%d.%d ::1 tcp %d 5201 delay %d",
		"%s10.0.%d.%d any access %d delay %d",	 "%s10.0.%d.%d any tcp %d delay %d",
	};
	size_t used = (size_t)sprintf(request, "flow set ");
	uint64_t count = draw(90);

	for (uint64_t index = 0; index < count && used < sizeof(request) - 64; index++)
		used += (size_t)snprintf(request + used, sizeof(request) - used, forms[draw(6)],
					 index ? " ; " : "", (int)draw(256), (int)draw(256), (int)draw(65536),
					 (int)draw(1000));
	if (!draw(2))
		request[used = draw(used)] = 0;
	while (used && !draw(2))
		request[draw(used)] = " ;0\t"[draw(4)];
}

static void try_request(struct core *core)
{
	size_t reply_bytes = draw(2) ? 64 + draw(4096) : 1 << 17;
	char *reply = malloc(reply_bytes); /* exact size: the sanitizer detects every access beyond */
	uint32_t flows = core->flows.count;
	uint32_t entries = 0;
	size_t length;

	if (draw(20))
		make_request();
	else
		make_flows();
	length = core_control(core, request, reply, reply_bytes);
	check(length < reply_bytes && strlen(reply) == length);
	check(!strncmp(reply, "ok\n", 3) || !strncmp(reply, "error ", 6));
	check(reply[length - 1] == '\n');
	check(core->flows.count <= core->flows.limit);
	check(core->dynamics_used <= CORE_DYNAMIC_PORTS);
	check(core->rate_entries_used <= core->config.rate_entries);
	for (uint8_t number = 1; number <= core->dynamics_used; number++)
		entries += core->dynamics[number].schedule.count;
	check(entries == core->rate_entries_used);
	check(core->flows.count == core->flows.of_kind[KEY_FLOW] + core->flows.of_kind[KEY_SOURCE_PORT] +
					   core->flows.of_kind[KEY_SOURCE_ADDRESS]);
	check(!strncmp(reply, "ok\n", 3) || core->flows.count == flows);
	for (size_t at = 0; at < length; at++)
		check(reply[at] == '\n' || (reply[at] >= ' ' && reply[at] <= '~'));
	free(reply);
}

static uint64_t number_after(const char *reply, const char *name)
{
	const char *at = strstr(reply, name);

	check(at);
	return strtoull(at + strlen(name), NULL, 10);
}

/* Checks that the program's registers hold the current length of each queue: the cells of a port add up. */
static void check_queue_registers(struct core *core)
{
	struct pipeline_queue_registers registers = pipeline_queue_registers(core->pipeline);
	static const char *const names[] = {"queue_packets", "queue_bytes"};
	const uint32_t *const cells[] = {registers.packets, registers.bytes};
	static char stats[1 << 17];

	core_control(core, "stats", stats, sizeof(stats));
	for (uint32_t port = 1; port <= 3; port++)
		for (int index = 0; index < 2; index++) {
			uint64_t length = 0;
			char name[64];

			if (!cells[index])
				continue;
			for (uint32_t qid = 0; qid < registers.queues; qid++)
				length += cells[index][port * registers.queues + qid];
			snprintf(name, sizeof(name), "\nport.%u.%s ", port, names[index]);
			check(length == number_after(stats, name));
			registers_checked++;
		}
}

/* About half of the frames start as a program expects and end anywhere; the others are random bytes. */
static void try_frame(struct core *core, uint64_t now_ns)
{
	static const uint8_t types[][2] = {{0x08, 0}, {0x86, 0xdd}, {0x81, 0}, {0x88, 0xb5}, {0x88, 0xa8},
					   {0x10, 0}, {0x20, 0},    {0x30, 0}, {0x40, 0},    {0x50, 0}};
	uint32_t length = (uint32_t)draw(draw(2) ? 80 : FRAME_BYTES + 20);
	uint8_t *frame = malloc(length ? length : 1);

	for (uint32_t at = 0; at < length; at++)
		frame[at] = (uint8_t)draw(256);
	if (length >= 34 && draw(4)) {
		memcpy(frame, "\x02\xbf\0\0\0\x02", 6);
		memcpy(frame + 12, types[draw(10)], 2);
		frame[14] = draw(2) ? 0x45 : (uint8_t)draw(256);
		frame[20] = frame[21] = draw(4) ? 0 : 0xff;
		frame[23] = draw(2) ? 17 : 6;
	}
	if (length && !draw(4))
		frame[0] = (uint8_t)draw(16);
	core_receive(core, now_ns, (uint16_t)draw(5), frame, length);
	free(frame);
}

int main(int argc, char **argv)
{
	struct core_config config = {
		.packets = PACKETS, .frame_bytes = FRAME_BYTES, .flows = 64, .rate_entries = 16};
	size_t bytes = core_memory_bytes(&config);
	struct core *core = core_create(aligned_alloc(64, bytes), &config);
	uint64_t now_ns = 1;
	struct core_output output;

	split_words();
	more = argv + 3;
	more_count = argc > 3 ? (uint64_t)argc - 3 : 0;
	random_state = argc > 1 ? strtoull(argv[1], NULL, 10) * 2654435761u + 1 : 1;
	for (uint16_t port = 1; port <= 3; port++)
		core_attach_port(core, port);
	for (long round = 0; round < (argc > 2 ? atol(argv[2]) : 10000); round++) {
		try_request(core);
		for (uint64_t count = draw(6); count; count--)
			try_frame(core, now_ns += draw(3000));
		if (!draw(2)) /* links with low rates become free */
			now_ns += draw(1000000000);
		core_advance(core, now_ns);
		check_queue_registers(core);
		while (core_take_output(core, draw(2) ? now_ns : CORE_NEVER_NS - 1, &output)) {
			volatile uint8_t last = output.bytes ? output.frame[output.bytes - 1] : 0;

			(void)last;
			core_release(core, &output);
		}
	}
	core_advance(core, CORE_NEVER_NS - 1);
	while (core_take_output(core, CORE_NEVER_NS - 1, &output))
		core_release(core, &output);
	strcpy(request, "stats");
	char *reply = malloc(1 << 17);
	core_control(core, "stats", reply, 1 << 17);
	check(strstr(reply, "\npackets_used 0\n"));
	puts(reply);
	printf("registers_checked %llu\n", (unsigned long long)registers_checked);
	free(reply);
	free(core);
	return 0;
}
