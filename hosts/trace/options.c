// SPDX-License-Identifier: MIT
// The command line of tcp_trace, checked whole before anything is opened.
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "../../lib/report.h"

enum { MAX_RING_MIB = 1024 };

static const char USAGE[] =
	"usage: tcp_trace --output FILE --summary FILE --netns PATH [option...]\n"
	"Records every segment received and every segment sent again by the TCP sockets of one network "
	"namespace.\n"
	"  --output FILE      records, in blocks (wire/block.def, wire/tcp_record.def); must not exist\n"
	"  --summary FILE     counters, written as JSON at the end\n"
	"  --netns PATH       the namespace: /run/netns/NAME or /proc/PID/ns/net\n"
	"  --port FIRST-LAST  only sockets whose remote port is in this range (default all)\n"
	"  --ring-mib N       ring of each CPU, in MiB, a power of two (default 16: about 100 thousand "
	"events)\n"
	"  --drop-user USER   become USER once everything is open (default: do not); USER must be able to "
	"write\n"
	"                     to the directory of the summary\n"
	"  --source S         bpf, tracefs (the kernel's own trace events; some fields are then unknown), or "
	"auto:\n"
	"                     bpf where the kernel has BTF and takes the programs, else tracefs (default "
	"auto)\n"
	"  --btf FILE         the kernel's types, for bpf (default /sys/kernel/btf/vmlinux)\n"
	"  --status           one line of JSON a second on stdout\n"
	"  --verbose          what libbpf and the verifier say, on stderr\n";

static int parse_ports(struct options *options, char *text)
{
	char *dash = strchr(text, '-');
	uint64_t first, last;
	int err;

	if (dash)
		*dash = '\0';
	err = parse_number("--port", text, 0, 65535, &first);
	if (err)
		return err;
	last = first;
	err = dash ? parse_number("--port", dash + 1, first, 65535, &last) : 0;
	if (err)
		return err;
	options->first_port = (uint16_t)first;
	options->last_port = (uint16_t)last;
	return 0;
}

static int parse_ring(struct options *options, const char *text)
{
	uint64_t mib;
	int err = parse_number("--ring-mib", text, 1, MAX_RING_MIB, &mib);

	if (!err && mib & (mib - 1)) {
		complain("--ring-mib '%s': give a power of two (1, 2, 4, ... %d)", text, MAX_RING_MIB);
		err = -EINVAL;
	}
	options->ring_bytes = mib << 20;
	return err;
}

static int parse_source(struct options *options, const char *text)
{
	static const char *const CHOICES[] = {
		[SOURCE_AUTO] = "auto", [SOURCE_BPF] = "bpf", [SOURCE_TRACEFS] = "tracefs"};

	for (size_t i = 0; i < sizeof(CHOICES) / sizeof(CHOICES[0]); i++) {
		if (!strcmp(text, CHOICES[i])) {
			options->source = (enum source_choice)i;
			return 0;
		}
	}
	complain("--source '%s': give auto, bpf or tracefs", text);
	return -EINVAL;
}

static int check_required(const struct options *options)
{
	const char *missing = !options->output	  ? "--output FILE"
			      : !options->summary ? "--summary FILE"
			      : !options->netns	  ? "--netns PATH"
						  : NULL;

	if (!missing && options->btf && options->source == SOURCE_TRACEFS) {
		complain("--btf is of --source bpf: leave one of them out");
		return -EINVAL;
	}
	if (!missing)
		return 0;
	complain("%s is missing (tcp_trace --help lists the options)", missing);
	return -EINVAL;
}

int options_parse(struct options *options, int argc, char **argv)
{
	enum { OUTPUT = 256, SUMMARY, NETNS, PORT, SOURCE, RING, DROP_USER, BTF, STATUS, VERBOSE, HELP };
	static const struct option LONG[] = {
		{"output", required_argument, NULL, OUTPUT},
		{"summary", required_argument, NULL, SUMMARY},
		{"netns", required_argument, NULL, NETNS},
		{"port", required_argument, NULL, PORT},
		{"source", required_argument, NULL, SOURCE},
		{"ring-mib", required_argument, NULL, RING},
		{"drop-user", required_argument, NULL, DROP_USER},
		{"btf", required_argument, NULL, BTF},
		{"status", no_argument, NULL, STATUS},
		{"verbose", no_argument, NULL, VERBOSE},
		{"help", no_argument, NULL, HELP},
		{NULL, 0, NULL, 0},
	};
	int option, err = 0;

	*options = (struct options){
		.ring_bytes = 16 << 20,
		.last_port = 65535,
	};
	while (!err && (option = getopt_long(argc, argv, "", LONG, NULL)) != -1) {
		switch (option) {
		case OUTPUT:
			options->output = optarg;
			break;
		case SUMMARY:
			options->summary = optarg;
			break;
		case NETNS:
			options->netns = optarg;
			break;
		case PORT:
			err = parse_ports(options, optarg);
			break;
		case SOURCE:
			err = parse_source(options, optarg);
			break;
		case RING:
			err = parse_ring(options, optarg);
			break;
		case DROP_USER:
			options->drop_user = optarg;
			break;
		case BTF:
			options->btf = optarg;
			break;
		case STATUS:
			options->status = true;
			break;
		case VERBOSE:
			options->verbose = true;
			break;
		case HELP:
			fputs(USAGE, stdout);
			return 1;
		default:
			return -EINVAL; /* getopt_long has said it */
		}
	}
	if (err)
		return err;
	if (optind < argc) {
		complain("'%s' is not an option (tcp_trace --help lists them)", argv[optind]);
		return -EINVAL;
	}
	return check_required(options);
}
