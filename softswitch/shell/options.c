/* SPDX-License-Identifier: MIT
 * The command line. The form and range of numbers and ports are checked here; the other files rely on it.
 */
#include <errno.h>
#include <string.h>

#include "../../lib/options.h"
#include "../../lib/report.h"
#include "shell.h"

static const char usage[] =
	"usage: softswitch --control PATH --port NUMBER=INTERFACE [--port ...] [OPTION...]\n"
	"Runs the compiled P4 program between the interfaces. Prints \"ready\", ends on SIGINT or SIGTERM.\n"
	"  --control PATH      Unix socket for requests (docs/control-protocol.md)\n"
	"  --port N=INTERFACE  port N (0 to 510) of the P4 program; at least one\n"
	"  --tap N=FILE        write the headers of all frames at port N to FILE, as a capture (pcap); at "
	"most\n"
	"                      twice\n"
	"  --frame-bytes N     longest frame, Ethernet header included (default: the largest MTU + 18)\n"
	"  --packets N         most packets in the switch (default: 32768, fewer if frames are large)\n"
	"  --flows N           most flows, source ports and source addresses with settings (default 16384)\n"
	"  --rate-entries N    most entries of all schedules of rates (default 0)\n"
	"  --ring-mib N        MiB of each port's receive ring (default 64)\n"
	"  --horizon-us N      how long frames may take from their time stamp to the ring (default 20)\n"
	"  --spin              never sleep: the least lateness, but one CPU is always busy\n"
	"  --no-watch          sleep exactly until an output is due, without polling the clock: for virtual\n"
	"                      time, in which the clock stands still while programs run\n"
	"  --no-boost          neither nice -20 nor a short scheduler slice\n"
	"  --drop-user USER    become USER and keep no privilege once the sockets are open\n"
	"  --allow-offloads    start on interfaces with offloads that hide packets\n";

/* Reads NUMBER=REST with the number of a port. Returns REST, or NULL. */
static char *numbered(char *text, uint16_t *number)
{
	char *equals = strchr(text, '=');
	size_t digits = equals ? (size_t)(equals - text) : 0;
	char prefix[8] = "";
	uint64_t port;

	if (digits && digits < sizeof(prefix))
		memcpy(prefix, text, digits);
	if (!whole_number(prefix, 0, PIPELINE_DROP_PORT - 1, &port) || !equals[1])
		return NULL;
	*number = (uint16_t)port;
	return equals + 1;
}

static int add_tap(void *to, const char *name, char *text)
{
	struct options *options = to;
	uint32_t at = options->tap_count;

	if (at == OPTIONS_MAX_TAPS) {
		complain("%s %s: at most %d taps", name, text, OPTIONS_MAX_TAPS);
		return -EINVAL;
	}
	options->taps[at].path = numbered(text, &options->taps[at].number);
	if (!options->taps[at].path) {
		complain("%s %s: give NUMBER=FILE, the number from 0 to %d", name, text,
			 PIPELINE_DROP_PORT - 1);
		return -EINVAL;
	}
	options->tap_count++;
	return 0;
}

static int add_port(void *to, const char *name, char *text)
{
	struct options *options = to;
	uint16_t port;
	const char *interface = numbered(text, &port);

	if (!interface || strlen(interface) >= IFNAMSIZ) {
		complain("%s %s: give NUMBER=INTERFACE, the number from 0 to %d, the interface with 1 to %d "
			 "characters",
			 name, text, PIPELINE_DROP_PORT - 1, IFNAMSIZ - 1);
		return -EINVAL;
	}
	if (options->port_count == EXECUTOR_MAX_PORTS) {
		complain("%s %s: at most %d ports", name, text, EXECUTOR_MAX_PORTS);
		return -EINVAL;
	}
	for (uint32_t index = 0; index < options->port_count; index++)
		if (options->ports[index].number == port ||
		    !strcmp(options->ports[index].interface, interface)) {
			complain("%s %s: port or interface given twice", name, text);
			return -EINVAL;
		}
	options->ports[options->port_count].number = port;
	strcpy(options->ports[options->port_count].interface, interface);
	options->port_count++;
	return 0;
}

int options_parse(struct options *options, int argc, char **argv)
{
	uint64_t frame_bytes = 0, packets = 0, flows = 16384, rate_entries = 0, ring_mib = 64,
		 horizon_us = 20;
	const struct option_row rows[] = {
		OPTION_NEEDED_TEXT("control", "PATH", &options->control_path),
		OPTION_NEEDED_READ("port", "N=INTERFACE", add_port, options),
		OPTION_READ("tap", add_tap, options),
		OPTION_NUMBER("frame-bytes", &frame_bytes, EXECUTOR_MIN_FRAME_BYTES, CORE_MAX_FRAME_BYTES),
		OPTION_NUMBER("packets", &packets, 16, CORE_MAX_PACKETS),
		OPTION_NUMBER("flows", &flows, 0, CORE_MAX_FLOWS),
		OPTION_NUMBER("rate-entries", &rate_entries, 0, CORE_MAX_RATE_ENTRIES),
		OPTION_NUMBER("ring-mib", &ring_mib, 1, 1024),
		OPTION_NUMBER("horizon-us", &horizon_us, 0, 1000000),
		OPTION_FLAG("spin", &options->spin),
		OPTION_FLAG_OFF("no-watch", &options->watch),
		OPTION_FLAG_OFF("no-boost", &options->boost),
		OPTION_TEXT("drop-user", &options->drop_user),
		OPTION_FLAG("allow-offloads", &options->allow_offloads),
		OPTIONS_END,
	};
	int err;

	*options = (struct options){.watch = true, .boost = true};
	err = options_read(rows, usage, argc, argv);
	options->frame_bytes = (uint32_t)frame_bytes;
	options->packets = (uint32_t)packets;
	options->flows = (uint32_t)flows;
	options->rate_entries = (uint32_t)rate_entries;
	options->ring_mib = (uint32_t)ring_mib;
	options->horizon_ns = horizon_us * 1000;
	return err;
}
