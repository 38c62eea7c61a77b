// SPDX-License-Identifier: MIT
// Open-loop traffic: each datagram leaves at its drawn or recorded time, regardless of the others. Sleeps until
// absolute times. An overdue datagram is sent at once. A histogram counts the lateness of every datagram, except of
// recorded ones that the next one follows within UNREAD_NS.
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "../../lib/clock_ns.h"
#include "../../lib/frames.h"
#include "../../lib/options.h"
#include "../../lib/report.h"
#include "files.h"
#include "open_loop.h"

enum {
	MARGIN_NS = 1000000,	      /* least time from now to the start */
	LONGEST_SLEEP_NS = 100000000, /* between two checks for signals */
	CHECK_EVERY = 256,	      /* datagrams between two checks for signals, while all are overdue */
	MOST_DATAGRAM_FLOWS = 16384,
	UNREAD_NS =
		1000, /* in virtual time each reading of the clock takes 1 ns, which would part neighbours */
};

#define MOST_NS ((uint64_t)1 << 62)

const char *const program_name = "open_loop";

static const char USAGE[] =
	"usage: open_loop --server ADDRESS --server-port N --rate-bps N --load-ppm N --duration-ns N "
	"--report FILE\n"
	"                 [option...]\n"
	"Sends UDP datagrams at random times (schedule.h has the distributions).\n"
	"  --server ADDRESS        IPv4 or IPv6 address of the host that runs traffic_sink\n"
	"  --server-port N         port of traffic_sink\n"
	"  --rate-bps N            rate of the link, in bits on the wire\n"
	"  --load-ppm N            load in millionths of that rate, 1 to 10000000\n"
	"  --duration-ns N         duration of the traffic\n"
	"  --report FILE           results as JSON\n"
	"  --arrivals poisson|cbr|periodic|jittered|recorded  (default poisson)\n"
	"  --departures FILE       recorded: the file with the datagrams (recorded.h)\n"
	"  --round-packets N       periodic and jittered: packets of a flow in a round, 1 to 1000000 "
	"(default 1)\n"
	"  --spacing-ppm N         periodic and jittered: time between two packets of a flow in a round, in "
	"millionths\n"
	"                          of a packet's time on the link (default: evenly spaced)\n"
	"  --sizes fixed|exponential|bimodal  sizes of IP packets, up to the MTU (default fixed)\n"
	"          bursts                     MTU-sized packets in the slow-start bursts of flows\n"
	"  --flow-packets N        with --sizes bursts: length of a flow in packets, 1 to 1000\n"
	"  --mtu N                 bytes (default 1500)\n"
	"  --flows N               number of 5-tuples (default 1)\n"
	"  --first-client-port N   port of the first flow (default 30000)\n"
	"  --seed N                seed of the random draws (default 1)\n"
	"  --start-mono-ns N       start on CLOCK_MONOTONIC; 0: at once (default). The report has the actual "
	"start\n"
	"  --show                  print the schedule (ns from the start, IP bytes, flow), and send "
	"nothing\n";

static int parse_options(struct open_loop *run, int argc, char **argv)
{
	static const char *const arrivals[] = {
		[ARRIVALS_POISSON] = "poisson",	  [ARRIVALS_CBR] = "cbr",
		[ARRIVALS_PERIODIC] = "periodic", [ARRIVALS_JITTERED] = "jittered",
		[ARRIVALS_RECORDED] = "recorded", NULL};
	static const char *const sizes[] = {[SIZES_FIXED] = "fixed",
					    [SIZES_EXPONENTIAL] = "exponential",
					    [SIZES_BIMODAL] = "bimodal",
					    [SIZES_BURSTS] = "bursts",
					    NULL};
	struct schedule_options *drawn = &run->drawn;
	const struct option_row rows[] = {
		OPTION_READ("server", read_server, &run->server),
		OPTION_NUMBER("server-port", &run->server_port, 1, 65535),
		OPTION_NEEDED_NUMBER("rate-bps", &drawn->rate_bps, 1, 1000000000000),
		OPTION_NEEDED_NUMBER("load-ppm", &drawn->load_ppm, 1, 10000000),
		OPTION_NEEDED_NUMBER("duration-ns", &run->duration_ns, 1, MOST_NS),
		OPTION_TEXT("report", &run->report),
		OPTION_CHOICE("arrivals", &drawn->arrivals, arrivals),
		OPTION_TEXT("departures", &run->departures),
		OPTION_CHOICE("sizes", &drawn->sizes, sizes),
		OPTION_NUMBER("flow-packets", &drawn->flow_packets, 1, MOST_FLOW_PACKETS),
		OPTION_NUMBER("round-packets", &drawn->round_packets, 1, MOST_ROUND_PACKETS),
		OPTION_NUMBER("spacing-ppm", &drawn->spacing_ppm, 1, 1000000000000),
		OPTION_NUMBER("mtu", &drawn->mtu_bytes, LEAST_IP_BYTES, 9216),
		OPTION_NUMBER("flows", &drawn->flows, 1, MOST_DATAGRAM_FLOWS),
		OPTION_NUMBER("first-client-port", &run->first_client_port, 1, 65535),
		OPTION_NUMBER("seed", &drawn->seed, 0, UINT64_MAX),
		OPTION_NUMBER("start-mono-ns", &run->planned_start_mono_ns, 0, MOST_NS),
		OPTION_FLAG("show", &run->show),
		OPTIONS_END,
	};
	int err;

	*run = (struct open_loop){
		.first_client_port = 30000,
		.drawn = {.mtu_bytes = 1500, .flows = 1, .seed = 1},
	};
	err = options_read(rows, USAGE, argc, argv);
	if (err)
		return err;
	if (!run->show && (!run->server.text || !run->server_port || !run->report)) {
		complain("without --show, --server, --server-port and --report are needed");
		return -EINVAL;
	}
	if ((drawn->arrivals == ARRIVALS_RECORDED) != (run->departures != NULL)) {
		complain(run->departures ? "--departures: allowed only with --arrivals recorded"
					 : "--arrivals recorded: needs --departures");
		return -EINVAL;
	}
	if ((drawn->sizes == SIZES_BURSTS) != (drawn->flow_packets > 0)) {
		complain(drawn->flow_packets ? "--flow-packets: allowed only with --sizes bursts"
					     : "--sizes bursts: needs --flow-packets, 1 to 1000");
		return -EINVAL;
	}
	if (drawn->arrivals == ARRIVALS_PERIODIC || drawn->arrivals == ARRIVALS_JITTERED) {
		if (drawn->sizes != SIZES_FIXED) {
			complain("--sizes: periodic and jittered packets have one size: give fixed");
			return -EINVAL;
		}
	} else if (drawn->round_packets || drawn->spacing_ppm) {
		complain("--round-packets and --spacing-ppm: allowed only with --arrivals periodic or "
			 "jittered");
		return -EINVAL;
	}
	if (run->first_client_port + drawn->flows > 65536) {
		complain("--first-client-port %" PRIu64 ": with %" PRIu64
			 " flows their ports go beyond 65535: begin lower",
			 run->first_client_port, drawn->flows);
		return -EINVAL;
	}
	return 0;
}

static struct departure next_departure(struct open_loop *run)
{
	return run->departures ? recorded_next(&run->recorded) : schedule_next(&run->schedule);
}

static void show(struct open_loop *run)
{
	struct departure next;

	for (next = next_departure(run); next.due_ns < run->duration_ns; next = next_departure(run))
		printf("%" PRIu64 " %" PRIu32 " %" PRIu32 "\n", next.due_ns, next.ip_bytes, next.flow);
}

/* Opens the socket of flow number index. 0, or -errno after one message. */
static int open_flow(struct open_loop *run, uint32_t index)
{
	const int fragment_never = IP_PMTUDISC_DO;
	uint16_t client_port = (uint16_t)(run->first_client_port + index);
	struct sockaddr_storage any = {.ss_family = run->server.address.ss_family},
				server = run->server.address;
	struct datagram_flow *flow = run->flows + index;
	const char *doing = "making its socket";
	socklen_t length = set_port(&any, client_port);
	int err;

	set_port(&server, (uint16_t)run->server_port);
	flow->fd = socket(any.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (flow->fd < 0)
		goto failed;
	if (any.ss_family == AF_INET)
		setsockopt(flow->fd, IPPROTO_IP, IP_MTU_DISCOVER, &fragment_never, sizeof(fragment_never));
	doing = "binding its port";
	if (bind(flow->fd, (struct sockaddr *)&any, length))
		goto failed;
	doing = "finding a route";
	if (connect(flow->fd, (struct sockaddr *)&server, length))
		goto failed;
	return 0;
failed:
	err = errno;
	complain("flow from port %d to %s port %" PRIu64 ": %s: %s", client_port, run->server.text,
		 run->server_port, doing, strerror(err));
	return -err;
}

static bool signalled(struct open_loop *run)
{
	sigset_t pending;

	sigpending(&pending);
	if (sigismember(&pending, SIGTERM) || sigismember(&pending, SIGINT))
		run->stopped = sigismember(&pending, SIGINT) ? "SIGINT" : "SIGTERM";
	return run->stopped;
}

/* Sleeps until mono_ns; false if a signal is pending. Signals are blocked, so none is lost between check and sleep. */
static bool sleep_until(struct open_loop *run, uint64_t now_ns, uint64_t mono_ns)
{
	uint64_t until_ns;
	struct timespec when;

	while (now_ns < mono_ns) {
		if (signalled(run))
			return false;
		until_ns = mono_ns - now_ns > LONGEST_SLEEP_NS ? now_ns + LONGEST_SLEEP_NS : mono_ns;
		when = (struct timespec){.tv_sec = (time_t)(until_ns / 1000000000),
					 .tv_nsec = (long)(until_ns % 1000000000)};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL);
		if (until_ns == mono_ns)
			return true;
		now_ns = until_ns;
	}
	return true;
}

static bool set_ecn(const struct open_loop *run, struct datagram_flow *flow, uint8_t ecn)
{
	bool ipv6 = run->server.address.ss_family == AF_INET6;
	int field = ecn;

	if (flow->ecn == ecn)
		return true;
	flow->ecn = ecn;
	return !setsockopt(flow->fd, ipv6 ? IPPROTO_IPV6 : IPPROTO_IP, ipv6 ? IPV6_TCLASS : IP_TOS, &field,
			   sizeof(field));
}

/* 0, or -errno after one message. A datagram for which the host has no buffer is dropped and counted. */
static int send_one(struct open_loop *run, const struct departure *departure)
{
	static const char zeros[9216];
	struct datagram_flow *flow = run->flows + departure->flow;
	bool ipv6 = run->server.address.ss_family == AF_INET6;
	uint32_t header_bytes = (ipv6 ? IPV6_BYTES : IPV4_BYTES) + UDP_BYTES;
	size_t payload = departure->ip_bytes > header_bytes ? departure->ip_bytes - header_bytes : 0;

	if (set_ecn(run, flow, departure->ecn) && send(flow->fd, zeros, payload, 0) >= 0) {
		flow->datagrams++;
		flow->ip_bytes += payload + header_bytes;
		return 0;
	}
	if (errno == ENOBUFS || errno == EAGAIN) {
		run->unsent++;
		return 0;
	}
	complain("sending %" PRIu32 " bytes to %s port %" PRIu64 ": %s%s", departure->ip_bytes,
		 run->server.text, run->server_port, strerror(errno),
		 errno == ECONNREFUSED ? "; is traffic_sink running there?"
		 : errno == EMSGSIZE   ? "; is the MTU smaller than --mtu?"
				       : "");
	return -errno;
}

static int carry(struct open_loop *run)
{
	uint64_t now_ns = mono_now_ns() + MARGIN_NS, due_ns, overdue = 0;
	struct departure next, following;
	int err = 0;

	run->start_mono_ns = run->planned_start_mono_ns > now_ns ? run->planned_start_mono_ns : now_ns;
	run->end_mono_ns = run->start_mono_ns + run->duration_ns;
	for (next = next_departure(run); !err && next.due_ns < run->duration_ns; next = following) {
		following = next_departure(run);
		due_ns = run->start_mono_ns + next.due_ns;
		if (due_ns > now_ns ? !sleep_until(run, now_ns, due_ns)
				    : ++overdue % CHECK_EVERY == 0 && signalled(run))
			return -EINTR;
		err = send_one(run, &next);
		if (run->departures && following.due_ns - next.due_ns < UNREAD_NS) {
			now_ns = due_ns;
			continue;
		}
		now_ns = mono_now_ns();
		send_lateness_count(&run->lateness, now_ns > due_ns ? now_ns - due_ns : 0);
	}
	if (!err && !sleep_until(run, mono_now_ns(), run->end_mono_ns))
		err = -EINTR;
	return !err && run->recorded.failed ? -EINVAL : err;
}

static void block_signals(void)
{
	sigset_t ending;

	sigemptyset(&ending);
	sigaddset(&ending, SIGTERM);
	sigaddset(&ending, SIGINT);
	sigprocmask(SIG_BLOCK, &ending, NULL);
	prctl(PR_SET_TIMERSLACK, 1);
}

static void release(struct open_loop *run)
{
	free(run->flows);
	schedule_destroy(&run->schedule);
	recorded_close(&run->recorded);
}

int main(int argc, char **argv)
{
	struct open_loop run;
	int err;

	err = parse_options(&run, argc, argv);
	if (err)
		return err > 0 ? 0 : EXIT_REFUSED;
	err = schedule_init(&run.schedule, &run.drawn);
	if (err == -EINVAL)
		complain("--spacing-ppm %" PRIu64 ": too wide for the load; allowed: up to %" PRIu64
			 " (flows / load)",
			 run.drawn.spacing_ppm, run.drawn.flows * 1000000000000 / run.drawn.load_ppm);
	else if (err)
		complain("--flows %" PRIu64 ": no memory for the schedule", run.drawn.flows);
	if (!err && run.departures)
		err = recorded_open(&run.recorded, run.departures, run.drawn.flows, run.drawn.mtu_bytes);
	if (err)
		return EXIT_REFUSED;
	if (run.show) {
		show(&run);
		release(&run);
		return run.recorded.failed ? EXIT_REFUSED : 0;
	}
	block_signals();
	run.flows = calloc(run.drawn.flows, sizeof(*run.flows));
	if (!run.flows)
		complain("--flows %" PRIu64 ": no memory for the flows", run.drawn.flows);
	if (!run.flows || allow_files(run.drawn.flows + 16, run.drawn.flows + 16)) {
		release(&run);
		return EXIT_REFUSED;
	}
	for (uint32_t index = 0; !err && index < run.drawn.flows; index++)
		err = open_flow(&run, index);
	if (err) {
		release(&run);
		return EXIT_REFUSED;
	}

	err = carry(&run);
	run.ended_mono_ns = mono_now_ns();
	if (run.stopped)
		complain("ended by %s before its time", run.stopped);
	if (open_loop_report(&run))
		err = -EIO;
	release(&run);
	return err ? EXIT_INCOMPLETE : 0;
}
