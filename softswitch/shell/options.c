/* SPDX-License-Identifier: MIT
 * The command line. Every value is checked here, so that the rest may rely on it.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "../../lib/report.h"
#include "shell.h"

static const char usage[] =
	"usage: softswitch --control PATH --port NUMBER=INTERFACE [--port ...] [OPTION...]\n"
	"Runs the compiled P4 program between the interfaces. Prints \"ready\", ends on SIGINT or SIGTERM.\n"
	"  --control PATH      Unix socket for requests (docs/control-protocol.md)\n"
	"  --port N=INTERFACE  port N (0 to 510) of the P4 program; at least one\n"
	"  --frame-bytes N     longest frame, Ethernet header included (default: the largest MTU + 18)\n"
	"  --packets N         packets in the switch at once (default: 32768, fewer if frames are large)\n"
	"  --flows N           flows with settings of their own (default 16384)\n"
	"  --ring-mib N        receive ring of each port (default 64)\n"
	"  --horizon-us N      how long frames may take from their time stamp to the ring (default 20)\n"
	"  --spin              poll all the time: earliest departures, one core\n"
	"  --no-watch          sleep to the ns and watch no clock: for a kernel in virtual time, where it\n"
	"                      stands still while programs run\n"
	"  --no-boost          neither nice -20 nor a short scheduler slice\n"
	"  --drop-user USER    keep no privilege once sockets are open\n"
	"  --allow-offloads    start on interfaces with offloads that hide packets\n";

static int number(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	if (whole_number(text, min, max, value))
		return 0;
	complain("--%s %s: a whole number from %llu to %llu", option, text, (unsigned long long)min,
		 (unsigned long long)max);
	return -EINVAL;
}

static int number32(const char *option, const char *text, uint64_t min, uint64_t max, uint32_t *value)
{
	uint64_t wide;
	int error = number(option, text, min, max, &wide);

	if (!error)
		*value = (uint32_t)wide;
	return error;
}

static int add_port(struct options *options, const char *text)
{
	const char *equals = strchr(text, '=');
	size_t digits = equals ? (size_t)(equals - text) : 0;
	char prefix[8] = "";
	uint64_t port;

	if (digits && digits < sizeof(prefix))
		memcpy(prefix, text, digits);
	if (!whole_number(prefix, 0, PIPELINE_DROP_PORT - 1, &port) || !equals[1] ||
	    strlen(equals + 1) >= IFNAMSIZ) {
		complain("--port %s: NUMBER=INTERFACE, the number from 0 to %d", text,
			 PIPELINE_DROP_PORT - 1);
		return -EINVAL;
	}
	if (options->port_count == EXECUTOR_MAX_PORTS) {
		complain("--port %s: at most %d ports", text, EXECUTOR_MAX_PORTS);
		return -EINVAL;
	}
	for (uint32_t index = 0; index < options->port_count; index++)
		if (options->ports[index].number == port ||
		    !strcmp(options->ports[index].interface, equals + 1)) {
			complain("--port %s: port or interface given twice", text);
			return -EINVAL;
		}
	options->ports[options->port_count].number = (uint16_t)port;
	strcpy(options->ports[options->port_count].interface, equals + 1);
	options->port_count++;
	return 0;
}

static int take(struct options *options, int key, const char *value)
{
	int error = 0;

	switch (key) {
	case 'c':
		options->control_path = value;
		break;
	case 'p':
		return add_port(options, value);
	case 'f':
		return number32("frame-bytes", value, EXECUTOR_MIN_FRAME_BYTES, CORE_MAX_FRAME_BYTES,
				&options->frame_bytes);
	case 'n':
		return number32("packets", value, 16, CORE_MAX_PACKETS, &options->packets);
	case 'l':
		return number32("flows", value, 0, CORE_MAX_FLOWS, &options->flows);
	case 'r':
		return number32("ring-mib", value, 1, 1024, &options->ring_mib);
	case 'z':
		error = number("horizon-us", value, 0, 1000000, &options->horizon_ns);
		options->horizon_ns *= 1000;
		break;
	case 's':
		options->spin = true;
		break;
	case 'w':
		options->watch = false;
		break;
	case 'b':
		options->boost = false;
		break;
	case 'u':
		options->drop_user = value;
		break;
	case 'o':
		options->allow_offloads = true;
		break;
	case 'h':
		fputs(usage, stdout);
		return 1;
	default:
		complain("try --help");
		return -EINVAL;
	}
	return error;
}

int options_parse(struct options *options, int argc, char **argv)
{
	static const struct option known[] = {
		{"control", required_argument, NULL, 'c'},
		{"port", required_argument, NULL, 'p'},
		{"frame-bytes", required_argument, NULL, 'f'},
		{"packets", required_argument, NULL, 'n'},
		{"flows", required_argument, NULL, 'l'},
		{"ring-mib", required_argument, NULL, 'r'},
		{"horizon-us", required_argument, NULL, 'z'},
		{"spin", no_argument, NULL, 's'},
		{"no-watch", no_argument, NULL, 'w'},
		{"no-boost", no_argument, NULL, 'b'},
		{"drop-user", required_argument, NULL, 'u'},
		{"allow-offloads", no_argument, NULL, 'o'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int key, error;

	*options = (struct options){
		.flows = 16384, .ring_mib = 64, .horizon_ns = 20000, .watch = true, .boost = true};
	while ((key = getopt_long(argc, argv, "h", known, NULL)) != -1) {
		error = take(options, key, optarg);
		if (error)
			return error;
	}
	if (optind < argc) {
		complain("unexpected word '%s': try --help", argv[optind]);
		return -EINVAL;
	}
	if (!options->control_path || !options->port_count) {
		complain("--control PATH and at least one --port N=INTERFACE are needed: try --help");
		return -EINVAL;
	}
	return 0;
}
