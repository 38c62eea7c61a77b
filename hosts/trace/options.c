// SPDX-License-Identifier: MIT
// The command line of tcp_trace, checked completely before anything is opened.
#include "options.h"

#include <errno.h>
#include <string.h>

#include "../../lib/options.h"
#include "../../lib/report.h"

enum { MAX_RING_MIB = 1024 };

static const char USAGE[] =
	"usage: tcp_trace --output FILE --summary FILE --netns PATH [option...]\n"
	"       tcp_trace --stale list|remove\n"
	"Records every segment that a TCP socket of one network namespace receives in state ESTABLISHED or "
	"retransmits.\n"
	"Once everything is open it keeps no capability, and becomes the owner of the summary's directory.\n"
	"--stale names the instances of tracefs that killed tracers left, or removes and names them.\n"
	"  --output FILE      records, in blocks (wire/block.def, wire/tcp_record.def); must not exist\n"
	"  --summary FILE     counters, written as JSON at the end\n"
	"  --netns PATH       the namespace: /run/netns/NAME or /proc/PID/ns/net\n"
	"  --port FIRST-LAST  only sockets whose remote port is in this range (default: all); FIRST alone: "
	"this port\n"
	"  --ring-mib N       size of each CPU's ring in MiB, a power of two (default 16: about 100 thousand "
	"events)\n"
	"  --source S         bpf; tracefs: the kernel's trace events, of which the stock ones leave some "
	"fields\n"
	"                     unknown; or auto (default): bpf if the kernel has BTF and loads the programs, "
	"else\n"
	"                     tracefs\n"
	"  --btf FILE         the kernel's types, for bpf (default /sys/kernel/btf/vmlinux)\n"
	"  --status           one line of JSON per second on stdout\n"
	"  --status-ms N      time between two lines of --status in ms (default 1000)\n"
	"  --read-ms N        empty the rings every N ms (default 20)\n"
	"  --verbose          print the messages of libbpf and the verifier on stderr\n";

static int read_ports(void *to, const char *name, char *text)
{
	struct options *options = to;
	char *dash = strchr(text, '-');
	uint64_t first, last;
	int err;

	if (dash)
		*dash = '\0';
	err = parse_number(name, text, 0, 65535, &first);
	if (err)
		return err;
	last = first;
	err = dash ? parse_number(name, dash + 1, first, 65535, &last) : 0;
	if (err)
		return err;
	options->first_port = (uint16_t)first;
	options->last_port = (uint16_t)last;
	return 0;
}

static int read_ring(void *to, const char *name, char *text)
{
	struct options *options = to;
	uint64_t mib;
	int err = parse_number(name, text, 1, MAX_RING_MIB, &mib);

	if (!err && mib & (mib - 1)) {
		complain("%s '%s': give a power of two (1, 2, 4, ... %d)", name, text, MAX_RING_MIB);
		err = -EINVAL;
	}
	options->ring_bytes = mib << 20;
	return err;
}

int options_parse(struct options *options, int argc, char **argv)
{
	static const char *const sources[] = {
		[SOURCE_AUTO] = "auto", [SOURCE_BPF] = "bpf", [SOURCE_TRACEFS] = "tracefs", NULL};
	const struct option_row rows[] = {
		OPTION_NEEDED_TEXT("output", "FILE", &options->output),
		OPTION_NEEDED_TEXT("summary", "FILE", &options->summary),
		OPTION_NEEDED_TEXT("netns", "PATH", &options->netns),
		OPTION_READ("port", read_ports, options),
		OPTION_CHOICE("source", &options->source, sources),
		OPTION_READ("ring-mib", read_ring, options),
		OPTION_TEXT("btf", &options->btf),
		OPTION_FLAG("status", &options->status),
		OPTION_NUMBER("status-ms", &options->status_ms, 1, 3600000),
		OPTION_NUMBER("read-ms", &options->read_ms, 1, 500),
		OPTION_FLAG("verbose", &options->verbose),
		OPTIONS_END,
	};
	int err;

	*options = (struct options){
		.ring_bytes = 16 << 20,
		.last_port = 65535,
		.status_ms = 1000,
		.read_ms = 20, /* a ring of 16 MiB lasts 25 times as long at 200 k events/s on one CPU */
	};
	err = options_read(rows, USAGE, argc, argv);
	if (!err && options->btf && options->source == SOURCE_TRACEFS) {
		complain("--btf is not for --source tracefs: leave one of them out");
		err = -EINVAL;
	}
	return err;
}
