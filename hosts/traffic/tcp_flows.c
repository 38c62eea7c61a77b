// SPDX-License-Identifier: MIT
// Runs long and finite TCP flows in one thread, for a given time. This file parses the command line, and prints the
// errors of a run that has ended.
#include "tcp_flows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/options.h"
#include "../../lib/report.h"
#include "files.h"

enum {
	OTHER_FILES = 16,
	MOST_FILES = 1 << 20, /* the default of fs.nr_open, which no process may exceed */
	MOST_ERRORS = 5,      /* printed one by one */
};

#define MOST_NS ((uint64_t)1 << 62)

const char *const program_name = "tcp_flows";

static const char USAGE[] =
	"usage: tcp_flows --server ADDRESS --duration-ns N --report FILE [option...] <FLOWS\n"
	"Sends on TCP flows for a given time. FLOWS has a line per flow:\n"
	"CONGESTION_CONTROL CLIENT_PORT SERVER_PORT OFFSET_NS BYTES USER [WORD...]\n"
	"BYTES 0: a long flow, which sends from OFFSET_NS after the start to the end. Otherwise a finite "
	"flow:\n"
	"it connects OFFSET_NS after the start or, if USER is not 0, after the end of USER's previous flow.\n"
	"Words: from=ADDRESS, the client's address; window=N, at most N segments in flight\n"
	"(needs " PUMP_DEVICE "); buffer=N, bytes of the send buffer; pacing, segments\n"
	"are spread over the round trip; ecn, a connection without ECN is an error;\n"
	"stop=N, a long flow ends N ns after the start, and no finite flow begins from then on;\n"
	"late, a long flow connects OFFSET_NS after the start, not before.\n"
	"  --server ADDRESS          IPv4 or IPv6 address of the host that runs traffic_sink\n"
	"  --duration-ns N           from the start to the end\n"
	"  --report FILE             results as JSON\n"
	"  --records FILE            a record of each flow (wire/flow_record.def in blocks); must not exist\n"
	"  --start-mono-ns N         start on CLOCK_MONOTONIC; 0: when all long flows are connected "
	"(default).\n"
	"                            If connecting takes longer, the start is later; the report has the "
	"actual\n"
	"                            start\n"
	"  --connect-interval-ns N   between the SYNs of two long flows (default 100000): all at once would\n"
	"                            overflow the server's queue of new connections\n"
	"  --setup-ns N              limit for the handshakes of all long flows, from the first SYN\n"
	"                            (default 30000000000)\n"
	"  --drain-ns N              from the end, when sending stops, to the RSTs (default 0)\n";

static int parse_options(struct run *run, int argc, char **argv)
{
	const struct option_row rows[] = {
		OPTION_NEEDED_READ("server", "ADDRESS", read_server, &run->path.server),
		OPTION_NEEDED_NUMBER("duration-ns", &run->duration_ns, 1, MOST_NS),
		OPTION_NEEDED_TEXT("report", "FILE", &run->report),
		OPTION_TEXT("records", &run->records_path),
		OPTION_NUMBER("start-mono-ns", &run->planned_start_mono_ns, 0, MOST_NS),
		OPTION_NUMBER("connect-interval-ns", &run->connect_interval_ns, 1, MOST_NS),
		OPTION_NUMBER("setup-ns", &run->setup_ns, 1, MOST_NS),
		OPTION_NUMBER("drain-ns", &run->drain_ns, 0, MOST_NS),
		OPTIONS_END,
	};

	*run = (struct run){.connect_interval_ns = 100000, .setup_ns = 30000000000};
	return options_read(rows, USAGE, argc, argv);
}

/* Prints the errors of the run. Returns whether the run is incomplete. Finite flows that were refused or reset are
 * results, and do not make it incomplete.
 */
static bool report_errors(const struct run *run)
{
	uint32_t failed = 0;

	if (run->stopped)
		complain("ended by %s before its time", run->stopped);
	for (uint32_t index = 0; index < run->list.count; index++) {
		const struct flow *flow = run->list.flows + index;

		if (flow->error && flow->state != FLOW_ENDED && failed++ < MOST_ERRORS)
			complain("flow from port %d to %s port %d: %s", flow->client_port,
				 run->path.server.text, flow->server_port, flow->error);
	}
	if (failed > MOST_ERRORS)
		complain("%" PRIu32 " more flows failed: see the report", failed - MOST_ERRORS);
	if (run->first_failed)
		complain("%" PRIu32 " finite flows were refused, %" PRIu32
			 " reset; the first, from port %d to port %d: %s",
			 run->refused, run->reset, run->first_failed->client_port,
			 run->first_failed->server_port,
			 run->first_failed->error ? run->first_failed->error : "no memory for the reason");
	return run->stopped || failed;
}

/* Opens all that the run needs. 0, or -errno after one message. The limit of open files becomes the number of flows, if
 * that is allowed. Room for the long flows is required; of the finite flows only a few are open at the same time.
 */
static int open_all(struct run *run)
{
	uint64_t least = run->list.long_count + OTHER_FILES;
	uint64_t all = run->list.count + OTHER_FILES;
	uint64_t most = all < MOST_FILES ? all : MOST_FILES;

	if (allow_files(most, least) || pump_open(&run->pump) || events_open(&run->events) ||
	    flow_records_open(&run->records, run->records_path))
		return -EIO;
	run->with_pump = pump_is_open(&run->pump);
	if (run->list.with_window && !run->with_pump) {
		complain("window=N of a flow needs " PUMP_DEVICE
			 ", which this kernel lacks: only the virtual-time "
			 "kernel bounds congestion windows");
		return -ENODEV;
	}
	if (ecn_setting_open(&run->path.ecn, run->list.with_ecn && run->list.with_ecn < run->list.count))
		return -EACCES;
	if (!agenda_open(&run->agenda, run->list.count))
		return 0;
	complain("planning %" PRIu32 " flows: no memory", run->list.count);
	return -ENOMEM;
}

int main(int argc, char **argv)
{
	struct run run;
	bool trouble;
	int err;

	err = parse_options(&run, argc, argv);
	if (err)
		return err > 0 ? 0 : EXIT_REFUSED;
	if (flow_list_read(stdin, &run.list))
		return EXIT_REFUSED;
	if (open_all(&run)) {
		flow_list_free(&run.list);
		return EXIT_REFUSED;
	}

	err = tcp_flows_carry(&run);
	ecn_setting_close(&run.path.ecn);
	pump_close(&run.pump);
	for (uint32_t index = 0; index < run.list.count; index++)
		flow_abort(run.list.flows + index);
	trouble = report_errors(&run);
	if (flow_records_close(&run.records) || tcp_flows_report(&run) || err)
		trouble = true;

	events_close(&run.events);
	agenda_close(&run.agenda);
	flow_list_free(&run.list);
	return trouble ? EXIT_INCOMPLETE : 0;
}
