// SPDX-License-Identifier: MIT
// Receives and discards the traffic of tcp_flows and open_loop, and counts it per flow and interval, in one thread.
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../lib/commit.h"
#include "../../lib/options.h"
#include "../../lib/privileges.h"
#include "../../lib/report.h"
#include "files.h"
#include "flow_list.h"
#include "sink.h"

enum {
	MOST_LISTENERS = 1024,
	MOST_FILES = 65536,
	ENOUGH_FILES = 256,
	/* Rounds after the signal: enough to read all datagrams of a full buffer, and each of MOST_FILES sockets once.
	 * A sender that goes on cannot delay the end further.
	 */
	MOST_LAST_ROUNDS = 4096,
};

const char *const program_name = "traffic_sink";

struct endpoint {
	bool udp;
	uint16_t port;
	uint16_t last_port; /* of a range, else port */
	uint32_t range;	    /* number of the range, from 1; 0: a single port */
	const char *cc;	    /* NULL: the host's default */
};

struct options {
	struct endpoint endpoints[MOST_LISTENERS];
	uint32_t count;
	uint32_t listeners;
	uint32_t ranges;
	uint64_t interval_ns;
	const char *output;
	const char *summary;
};

static struct options options;

static const char USAGE[] =
	"usage: traffic_sink {--tcp PORT[=CC] | --udp PORT}... [--interval-ns N] --output FILE --summary "
	"FILE\n"
	"Receives and discards until SIGTERM or SIGINT; prints ready when it listens.\n"
	"  --tcp PORT[=CC]  accept TCP connections, with the congestion control CC; may be repeated\n"
	"  --tcp FIRST-LAST[=CC]  the same on all these ports; the summary has their sum, not each "
	"connection\n"
	"  --udp PORT       receive datagrams; may be repeated\n"
	"  --interval-ns N  length of a goodput interval (default 100000000)\n"
	"  --output FILE    bytes per flow and interval (wire/goodput_record.def in blocks); must not exist\n"
	"  --summary FILE   totals as JSON, at the end\n";

static int add_endpoint(struct options *options, const char *name, const struct endpoint *endpoint)
{
	options->listeners += endpoint->last_port - endpoint->port + 1u;
	if (options->listeners > MOST_LISTENERS) {
		complain("%s: more than %d ports in total: give fewer", name, MOST_LISTENERS);
		return -EINVAL;
	}
	options->endpoints[options->count++] = *endpoint;
	return 0;
}

static int read_port(const char *name, const char *text, uint64_t least, uint16_t *port)
{
	uint64_t number;
	int err = parse_number(name, text, least, 65535, &number);

	*port = err ? 0 : (uint16_t)number;
	return err;
}

static int read_udp(void *to, const char *name, char *text)
{
	struct endpoint endpoint = {.udp = true};
	int err = read_port(name, text, 1, &endpoint.port);

	endpoint.last_port = endpoint.port;
	return err ? err : add_endpoint(to, name, &endpoint);
}

static int read_tcp(void *to, const char *name, char *text)
{
	struct options *options = to;
	struct endpoint endpoint = {.cc = strchr(text, '=')};
	char *last = strchr(text, '-');
	int err;

	if (endpoint.cc) {
		text[endpoint.cc - text] = '\0';
		endpoint.cc++;
	}
	if (endpoint.cc && (!*endpoint.cc || strlen(endpoint.cc) >= CC_NAME_BYTES)) {
		complain("%s %s=%s: give the name of a congestion control after '='", name, text,
			 endpoint.cc);
		return -EINVAL;
	}
	if (last && (!endpoint.cc || last < endpoint.cc))
		*last++ = '\0';
	else
		last = NULL;
	err = read_port(name, text, 1, &endpoint.port);
	endpoint.last_port = endpoint.port;
	if (!err && last) {
		err = read_port(name, last, endpoint.port, &endpoint.last_port);
		endpoint.range = ++options->ranges;
	}
	return err ? err : add_endpoint(options, name, &endpoint);
}

static int parse_options(int argc, char **argv)
{
	const struct option_row rows[] = {
		OPTION_READ("tcp", read_tcp, &options),
		OPTION_READ("udp", read_udp, &options),
		OPTION_NUMBER("interval-ns", &options.interval_ns, 10000, 1000000000000),
		OPTION_NEEDED_TEXT("output", "FILE", &options.output),
		OPTION_NEEDED_TEXT("summary", "FILE", &options.summary),
		OPTIONS_END,
	};
	int err;

	options.interval_ns = 100000000;
	err = options_read(rows, USAGE, argc, argv);
	if (!err && !options.count) {
		complain("no port is given: give --tcp PORT[=CC] or --udp PORT");
		err = -EINVAL;
	}
	return err;
}

static void print_flow(FILE *file, const struct sink_flow *flow)
{
	static const char *const ends[] = {"open", "closed", "reset", "failed"};
	char address[NI_MAXHOST] = "";

	getnameinfo((const struct sockaddr *)&flow->peer, sizeof(flow->peer), address, sizeof(address), NULL,
		    0, NI_NUMERICHOST);
	fprintf(file,
		"{\"protocol\":\"%s\",\"src_addr\":\"%s\",\"src_port\":%d,\"dst_port\":%d,\"bytes\":%" PRIu64
		",\"reads\":%" PRIu64 ",\"first_mono_ns\":%" PRIu64
		",\"end\":\"%s\",\"ended_mono_ns\":%" PRIu64 "}",
		flow->protocol, strncmp(address, "::ffff:", 7) ? address : address + 7, flow->meter.src_port,
		flow->meter.dst_port, flow->meter.total_bytes, flow->meter.total_reads, flow->first_mono_ns,
		ends[flow->end], flow->last_mono_ns);
}

static void print_range(FILE *file, const struct sink *sink, const struct endpoint *endpoint)
{
	uint64_t connections = 0, bytes = 0, by_end[SINK_ENDS] = {0};

	for (uint32_t index = 0; index < sink->flow_count; index++) {
		const struct sink_flow *flow = sink->flows[index];

		if (flow->range != endpoint->range)
			continue;
		connections++;
		bytes += flow->meter.total_bytes;
		by_end[flow->end]++;
	}
	fprintf(file,
		"{\"first_port\":%d,\"last_port\":%d,\"connections\":%" PRIu64 ",\"bytes\":%" PRIu64
		",\"open\":%" PRIu64 ",\"closed\":%" PRIu64 ",\"reset\":%" PRIu64 ",\"failed\":%" PRIu64 "}",
		endpoint->port, endpoint->last_port, connections, bytes, by_end[SINK_OPEN],
		by_end[SINK_CLOSED], by_end[SINK_RESET], by_end[SINK_FAILED]);
}

static void print_summary(FILE *file, const void *context)
{
	const struct sink *sink = context;
	const char *separator = "\n  ";

	fputc('{', file);
	goodput_print(file, &sink->goodput);
	fprintf(file, ",\n \"connections_refused\":%" PRIu64 ",\"datagrams_dropped\":%" PRIu64, sink->refused,
		sink_udp_drops(sink));
	fprintf(file, ",\n \"executor\":\"%s\"", pump_is_open(&sink->pump) ? "kernel" : "process");
	fputs(",\n \"ranges\":[", file);
	for (uint32_t index = 0; index < options.count; index++) {
		if (!options.endpoints[index].range)
			continue;
		fputs(separator, file);
		print_range(file, sink, options.endpoints + index);
		separator = ",\n  ";
	}
	fputs("],\n \"flows\":[", file);
	separator = "\n  ";
	for (uint32_t index = 0; index < sink->flow_count; index++) {
		if (sink->flows[index]->range)
			continue;
		fputs(separator, file);
		print_flow(file, sink->flows[index]);
		separator = ",\n  ";
	}
	fputs("]}\n", file);
}

static int end_interval(struct sink *sink)
{
	int err = sink_pump_collect(sink);

	goodput_timer(&sink->goodput);
	return err || sink->goodput.interval_mono_ns ? err : sink_pump_arm(sink);
}

/* Receives until a signal, then empties the sockets. 0, or -errno after one message. */
static int run(struct sink *sink)
{
	enum events_wakeup wakeup;
	int sockets, err, last_rounds = 0;

	while (true) {
		err = events_wait(&sink->events, !last_rounds, &sockets, &wakeup);
		if (err)
			complain("waiting for sockets: %s", strerror(-err));
		/* The timer precedes the sockets: bytes that are read from now on belong to the next interval. */
		if (wakeup == EVENTS_TIMER && !err)
			err = end_interval(sink);
		for (int index = 0; !err && index < sockets; index++) {
			struct sink_handler *handler = sink->events.batch[index].data.ptr;

			err = handler->ready(handler, sink);
		}
		if (wakeup == EVENTS_SIGNAL || last_rounds)
			last_rounds++;
		if (err || (last_rounds && !sockets) || last_rounds == MOST_LAST_ROUNDS)
			return err;
	}
}

static int listen_on(struct sink *sink, const struct endpoint *endpoint)
{
	int err = endpoint->udp ? sink_udp(sink, endpoint->port) : 0;

	if (endpoint->udp)
		return err;
	for (uint32_t port = endpoint->port; !err && port <= endpoint->last_port; port++)
		err = sink_tcp(sink, (uint16_t)port, endpoint->cc, endpoint->range);
	return err;
}

static int listen_all(struct sink *sink)
{
	int err = 0;

	for (uint32_t index = 0; !err && index < options.count; index++)
		err = listen_on(sink, options.endpoints + index);
	return err;
}

int main(int argc, char **argv)
{
	struct sink sink = {0};
	int err;

	err = parse_options(argc, argv);
	if (err)
		return err > 0 ? 0 : EXIT_REFUSED;
	if (allow_files(MOST_FILES, ENOUGH_FILES) || events_open(&sink.events))
		return EXIT_REFUSED;
	if (sink_pump_open(&sink) || listen_all(&sink) ||
	    goodput_open(&sink.goodput, &sink.events, options.interval_ns, options.output) ||
	    drop_privileges(options.summary)) {
		sink_free(&sink);
		events_close(&sink.events);
		return EXIT_REFUSED;
	}
	puts("ready");
	fflush(stdout);

	err = run(&sink);

	for (uint32_t index = 0; index < sink.flow_count; index++)
		if (sink.flows[index]->fd >= 0)
			sink_tcp_close(sink.flows[index], &sink);
	if (goodput_close(&sink.goodput))
		err = -EIO;
	if (report_write(options.summary, print_summary, &sink))
		err = -EIO;
	pump_close(&sink.pump);
	sink_free(&sink);
	events_close(&sink.events);
	return err || sink.refused ? EXIT_INCOMPLETE : 0;
}
