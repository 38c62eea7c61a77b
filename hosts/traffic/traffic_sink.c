// SPDX-License-Identifier: MIT
// Receives and discards the traffic of tcp_flows and open_loop, and counts it per flow and interval, in one thread.
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../lib/options.h"
#include "../../lib/report.h"
#include "files.h"
#include "flow_list.h"
#include "sink.h"

enum {
	MOST_LISTENERS = 1024,
	MOST_FILES = 65536,
	ENOUGH_FILES = 256,
	/* Rounds after the signal: enough for all datagrams of a full buffer, and for a batch for each of MOST_FILES.
	 * A sender that goes on cannot delay the end further.
	 */
	MOST_LAST_ROUNDS = 4096,
};

const char *const program_name = "traffic_sink";

struct endpoint {
	bool udp;
	uint16_t port;
	const char *cc; /* NULL: the host's default */
};

struct options {
	struct endpoint endpoints[MOST_LISTENERS];
	uint32_t count;
	uint64_t interval_ns;
	const char *output;
	const char *summary;
};

static const char USAGE[] =
	"usage: traffic_sink --tcp PORT[=CC]... --udp PORT... --interval-ns N --output FILE --summary FILE\n"
	"Receives and discards until SIGTERM or SIGINT; prints ready when it listens.\n"
	"  --tcp PORT[=CC]  accept TCP connections, with this congestion control; may be repeated\n"
	"  --udp PORT       receive datagrams; may be repeated\n"
	"  --interval-ns N  length of an interval (default 100000000)\n"
	"  --output FILE    bytes per flow and interval (wire/goodput_record.def in blocks); must not exist\n"
	"  --summary FILE   totals as JSON, at the end\n";

static int add_endpoint(struct options *options, const char *name, const char *port_text, const char *cc)
{
	uint64_t port;
	int err = parse_number(name, port_text, 1, 65535, &port);

	if (err)
		return err;
	if (options->count == MOST_LISTENERS) {
		complain("more than %d ports: give fewer", MOST_LISTENERS);
		return -EINVAL;
	}
	options->endpoints[options->count++] =
		(struct endpoint){.udp = !strcmp(name, "--udp"), .port = (uint16_t)port, .cc = cc};
	return 0;
}

static int read_udp(void *to, const char *name, char *text)
{
	return add_endpoint(to, name, text, NULL);
}

static int read_tcp(void *to, const char *name, char *text)
{
	char *cc = strchr(text, '=');

	if (cc)
		*cc++ = '\0';
	if (cc && (!*cc || strlen(cc) >= CC_NAME_BYTES)) {
		complain("%s %s=%s: give the name of a congestion control after '='", name, text, cc);
		return -EINVAL;
	}
	return add_endpoint(to, name, text, cc);
}

static int parse_options(struct options *options, int argc, char **argv)
{
	const struct option_row rows[] = {
		OPTION_READ("tcp", read_tcp, options),
		OPTION_READ("udp", read_udp, options),
		OPTION_NUMBER("interval-ns", &options->interval_ns, 10000, 1000000000000),
		OPTION_NEEDED_TEXT("output", "FILE", &options->output),
		OPTION_NEEDED_TEXT("summary", "FILE", &options->summary),
		OPTIONS_END,
	};
	int err;

	options->interval_ns = 100000000;
	err = options_read(rows, USAGE, argc, argv);
	if (!err && !options->count) {
		complain("no port is given: --tcp PORT[=CC] or --udp PORT");
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

static void print_summary(FILE *file, const void *context)
{
	const struct sink *sink = context;

	fputc('{', file);
	goodput_print(file, &sink->goodput);
	fprintf(file, ",\n \"connections_refused\":%" PRIu64 ",\"datagrams_dropped\":%" PRIu64, sink->refused,
		sink_udp_drops(sink));
	fprintf(file, ",\n \"executor\":\"%s\"", pump_is_open(&sink->pump) ? "kernel" : "process");
	fputs(",\n \"flows\":[", file);
	for (uint32_t index = 0; index < sink->flow_count; index++) {
		fputs(index ? ",\n  " : "\n  ", file);
		print_flow(file, sink->flows[index]);
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
		/* Before the sockets: bytes that are read from now on belong to the next interval. */
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

static int listen_all(struct sink *sink, const struct options *options)
{
	int err = 0;

	for (uint32_t index = 0; !err && index < options->count; index++) {
		const struct endpoint *endpoint = options->endpoints + index;

		err = endpoint->udp ? sink_udp(sink, endpoint->port)
				    : sink_tcp(sink, endpoint->port, endpoint->cc);
	}
	return err;
}

int main(int argc, char **argv)
{
	static struct options options;
	struct sink sink = {0};
	int err;

	err = parse_options(&options, argc, argv);
	if (err)
		return err > 0 ? 0 : EXIT_REFUSED;
	if (allow_files(MOST_FILES, ENOUGH_FILES) || events_open(&sink.events))
		return EXIT_REFUSED;
	if (sink_pump_open(&sink) || listen_all(&sink, &options) ||
	    goodput_open(&sink.goodput, &sink.events, options.interval_ns, options.output)) {
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
	if (write_report(options.summary, print_summary, &sink))
		err = -EIO;
	pump_close(&sink.pump);
	sink_free(&sink);
	events_close(&sink.events);
	return err || sink.refused ? EXIT_INCOMPLETE : 0;
}
