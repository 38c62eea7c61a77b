// SPDX-License-Identifier: MIT
#include "scenario.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/options.h"
#include "lib/report.h"

enum { LINE_BYTES = 160, MOST_FLOWS = 2100000, LEAST_ROOM = 1024 };

#define MOST_NS	 ((uint64_t)1 << 62)
#define MOST_BPS 1000000000000

const char *const program_name = "simulator";

static const char USAGE[] =
	"usage: simulator --rate-bps N --data-delay-ns N ... --directory DIR <FLOWS\n"
	"Simulates TCP flows through one queue with ns-3, and writes postcards.bsp, tcp.bst, goodput.bsg\n"
	"and simulator.json into DIR; if there are finite flows, also flows.bsf. FLOWS has a line per flow:\n"
	"CONGESTION_CONTROL CLIENT_PORT SERVER_PORT START_NS EXTRA_DELAY_NS [BYTES USER] [WORD...]\n"
	"With BYTES a flow connects at START_NS, sends BYTES and closes. Without BYTES, or with 0, it\n"
	"connects before the traffic starts and sends from START_NS until the traffic ends. START_NS counts\n"
	"from the start of the traffic; for a later flow of the same USER from the end of the previous one.\n"
	"A WORD is from=ADDRESS, the sender's address; access=BPS, the rate of the flow's access link;\n"
	"link=N, the shared access link 1 to 1000 of this rate, instead of a link of the flow's own.\n"
	"  --sender ADDRESS, --receiver ADDRESS   IPv4 (default 10.77.0.1 and 10.77.0.2)\n"
	"  --rate-bps N                           rate of the bottleneck in wire bits per second\n"
	"  --data-delay-ns N, --ack-delay-ns N    propagation delay to the receiver, and back\n"
	"  --mtu N                                bytes of the longest IP packet\n"
	"  --mode tail-drop|ecn|egress-threshold  queue policy (default tail-drop), as in "
	"p4src/shared/queue_policy.p4\n"
	"  --threshold-packets N                  threshold of the queue policy\n"
	"  --limit-packets N                      capacity of the queue\n"
	"  --start-mono-ns N, --duration-ns N     start and duration of the traffic\n"
	"  --drain-ns N                           simulated time after the end of the traffic (default 0)\n"
	"  --connect-interval-ns N                time between the SYNs of two long flows (default 100000)\n"
	"  --goodput-interval-ns N                time between two records of goodput (default 10000000)\n"
	"  --initial-window N                     initial window of a flow in segments (default 10)\n"
	"  --acks delayed|each                    an ACK for two segments (default), or for each\n"
	"  --sack on|off                          default on\n"
	"  --pacing off|linux|exact               off (default): bursts; linux: 2 windows per RTT in slow\n"
	"                                         start, else 1.2; exact: 1 window per RTT\n"
	"  --window-packets N                     most packets in a congestion window (default: no bound)\n"
	"  --socket-bytes N                       size of a socket's buffer (default: it bounds no window)\n"
	"  --seed N                               seed of ns-3's random numbers (default 1)\n"
	"  --directory DIR                        directory for the files, which must not exist there\n";

static const char *const MODES[] = {"tail-drop", "ecn", "egress-threshold", NULL};
static const char *const ACKS[] = {"delayed", "each", NULL};
static const char *const SACK[] = {"on", "off", NULL};
static const char *const PACING[] = {"off", "linux", "exact", NULL};

static const struct {
	const char *linux_name, *type;
} CONTROLS[] = {
	{"reno", "ns3::TcpLinuxReno"},	  {"cubic", "ns3::TcpCubic"},
	{"bbr", "ns3::TcpBbr"},		  {"bic", "ns3::TcpBic"},
	{"dctcp", "ns3::TcpDctcp"},	  {"highspeed", "ns3::TcpHighSpeed"},
	{"htcp", "ns3::TcpHtcp"},	  {"hybla", "ns3::TcpHybla"},
	{"illinois", "ns3::TcpIllinois"}, {"lp", "ns3::TcpLp"},
	{"scalable", "ns3::TcpScalable"}, {"vegas", "ns3::TcpVegas"},
	{"veno", "ns3::TcpVeno"},	  {"westwood", "ns3::TcpWestwoodPlus"},
	{"yeah", "ns3::TcpYeah"},
};

static const char *type_of(const char *linux_name)
{
	for (size_t index = 0; linux_name && index < sizeof(CONTROLS) / sizeof(*CONTROLS); index++)
		if (!strcmp(linux_name, CONTROLS[index].linux_name))
			return CONTROLS[index].type;
	return NULL;
}

static bool number(char **rest, uint64_t low, uint64_t high, uint64_t *value)
{
	const char *word = strtok_r(NULL, " \n", rest);

	return word && whole_number(word, low, high, value);
}

static bool read_word(const char *word, struct scenario_flow *flow)
{
	struct in_addr address;
	uint64_t value;

	if (!strncmp(word, "from=", 5)) {
		if (inet_pton(AF_INET, word + 5, &address) != 1)
			return false;
		flow->source = ntohl(address.s_addr);
		return true;
	}
	if (!strncmp(word, "access=", 7))
		return whole_number(word + 7, 1, MOST_BPS, &flow->access_bps);
	if (strncmp(word, "link=", 5) || !whole_number(word + 5, 1, MOST_ACCESS_LINKS, &value))
		return false;
	flow->access_link = (uint32_t)value;
	return true;
}

static bool read_line(char *line, struct scenario_flow *flow)
{
	char *rest = line;
	const char *word;
	uint64_t client_port, server_port;

	*flow = (struct scenario_flow){.type = type_of(strtok_r(line, " \n", &rest))};
	if (!flow->type || !number(&rest, 1, 65535, &client_port) || !number(&rest, 1, 65535, &server_port) ||
	    !number(&rest, 0, MOST_NS, &flow->start_ns) || !number(&rest, 0, MOST_NS, &flow->extra_delay_ns))
		return false;
	flow->client_port = (uint16_t)client_port;
	flow->server_port = (uint16_t)server_port;
	word = strtok_r(NULL, " \n", &rest);
	if (word && !strchr(word, '=')) {
		if (!whole_number(word, 0, MOST_NS, &flow->bytes) ||
		    !number(&rest, 0, UINT32_MAX, &flow->user) || (flow->user && !flow->bytes))
			return false;
		word = strtok_r(NULL, " \n", &rest);
	}
	for (; word; word = strtok_r(NULL, " \n", &rest))
		if (!read_word(word, flow))
			return false;
	return !flow->access_link || flow->access_bps;
}

static bool make_room(struct scenario *scenario, uint32_t *room)
{
	struct scenario_flow *grown;

	if (scenario->flow_count < *room)
		return true;
	*room = *room ? 2 * *room : LEAST_ROOM;
	grown = realloc(scenario->flows, *room * sizeof(*grown));
	if (grown)
		scenario->flows = grown;
	return grown;
}

static int read_flows(struct scenario *scenario, FILE *file)
{
	char line[LINE_BYTES];
	uint32_t room = 0;

	while (fgets(line, sizeof(line), file)) {
		if (!make_room(scenario, &room)) {
			complain("no memory for %u flows", room);
			return -ENOMEM;
		}
		if (scenario->flow_count == MOST_FLOWS || !strchr(line, '\n') ||
		    !read_line(line, scenario->flows + scenario->flow_count)) {
			complain("line %u of the flows: give CONGESTION_CONTROL CLIENT_PORT SERVER_PORT "
				 "START_NS "
				 "EXTRA_DELAY_NS [BYTES USER] [from=ADDRESS] [access=BPS [link=N]]; "
				 "ns-3 has reno, cubic, bbr, bic, dctcp, "
				 "highspeed, htcp, "
				 "hybla, "
				 "illinois, lp, scalable, vegas, veno, westwood, yeah; at most %d flows",
				 scenario->flow_count + 1, MOST_FLOWS);
			return -EINVAL;
		}
		scenario->long_count += !scenario->flows[scenario->flow_count++].bytes;
	}
	if (!scenario->flow_count) {
		complain("no flows on standard input: give at least one");
		return -EINVAL;
	}
	return 0;
}

static const char *misfit(const struct scenario *scenario)
{
	struct in_addr address;

	if (inet_pton(AF_INET, scenario->sender, &address) != 1 ||
	    inet_pton(AF_INET, scenario->receiver, &address) != 1 ||
	    !strcmp(scenario->sender, scenario->receiver))
		return "--sender and --receiver: give two different IPv4 addresses";
	if (scenario->connect_interval_ns * scenario->long_count > scenario->start_mono_ns)
		return "the long flows cannot all connect before the start: raise --start-mono-ns, or lower "
		       "--connect-interval-ns";
	return NULL;
}

int scenario_read(struct scenario *scenario, int argc, char **argv)
{
	const struct option_row rows[] = {
		OPTION_TEXT("sender", &scenario->sender),
		OPTION_TEXT("receiver", &scenario->receiver),
		OPTION_NEEDED_NUMBER("rate-bps", &scenario->rate_bps, 1, MOST_BPS),
		OPTION_NEEDED_NUMBER("data-delay-ns", &scenario->data_delay_ns, 0, MOST_NS),
		OPTION_NEEDED_NUMBER("ack-delay-ns", &scenario->ack_delay_ns, 0, MOST_NS),
		OPTION_NEEDED_NUMBER("mtu", &scenario->mtu_bytes, 128, 65000),
		OPTION_CHOICE("mode", &scenario->mode, MODES),
		OPTION_NEEDED_NUMBER("threshold-packets", &scenario->threshold_packets, 1, UINT32_MAX),
		OPTION_NEEDED_NUMBER("limit-packets", &scenario->limit_packets, 1, UINT32_MAX),
		OPTION_NEEDED_NUMBER("start-mono-ns", &scenario->start_mono_ns, 1, MOST_NS),
		OPTION_NEEDED_NUMBER("duration-ns", &scenario->duration_ns, 1, MOST_NS),
		OPTION_NUMBER("drain-ns", &scenario->drain_ns, 0, MOST_NS),
		OPTION_NUMBER("connect-interval-ns", &scenario->connect_interval_ns, 1, 1000000000),
		OPTION_NUMBER("goodput-interval-ns", &scenario->goodput_interval_ns, 1000, MOST_NS),
		OPTION_NUMBER("initial-window", &scenario->initial_window, 1, 1024),
		OPTION_CHOICE("acks", &scenario->acks, ACKS),
		OPTION_CHOICE("sack", &scenario->no_sack, SACK),
		OPTION_CHOICE("pacing", &scenario->pacing, PACING),
		OPTION_NUMBER("window-packets", &scenario->window_packets, 1, 1000000),
		OPTION_NUMBER("socket-bytes", &scenario->socket_bytes, 4096, 1 << 30),
		OPTION_NUMBER("seed", &scenario->seed, 1, UINT32_MAX),
		OPTION_NEEDED_TEXT("directory", "DIR", &scenario->directory),
		OPTIONS_END,
	};
	const char *problem;
	int err;

	*scenario = (struct scenario){
		.sender = "10.77.0.1",
		.receiver = "10.77.0.2",
		.connect_interval_ns = 100000,
		.goodput_interval_ns = 10000000,
		.initial_window = 10,
		.seed = 1,
	};
	err = options_read(rows, USAGE, argc, argv);
	if (err)
		return err;
	err = read_flows(scenario, stdin);
	if (err)
		return err;
	problem = misfit(scenario);
	if (!problem)
		return 0;
	complain("%s", problem);
	return -EINVAL;
}
