// SPDX-License-Identifier: MIT
// Reads and checks the command line before anything is opened.
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/report.h"

enum {
	MIB = 1 << 20,
	DEFAULT_RECEIVE_BUFFER_BYTES = 256 * MIB,  /* 0.5 s at 1 M/s; taken up only while behind */
	MAX_RECEIVE_BUFFER_BYTES = 1024 * MIB - 1, /* its double must fit the kernel's int */
	DEFAULT_BUFFERS = 64,			   /* of 1 MiB: 1 s of a stalled disk at 700 k postcards/s */
	MAX_BUFFERS = 4096,
};

static const char help_text[] =
	"collector --listen [ADDRESS]:PORT --output FILE --summary FILE [options]\n"
	"collector --listen [ADDRESS]:PORT --discard                    measure receiving alone\n"
	"collector --synthetic COUNT --output FILE                      measure storing alone\n"
	"\n"
	"Receives postcards (UDP) and appends them to a raw file of blocks until SIGINT or SIGTERM.\n"
	"\n"
	"  --listen [ADDRESS]:PORT   no address: all of IPv6 and IPv4; IPv6 addresses in brackets\n"
	"  --output FILE             raw file; must not exist\n"
	"  --summary FILE            what was received, lost and stored, as JSON, at the end; must not "
	"exist\n"
	"  --status                  a JSON line a second on stdout\n"
	"  --receive-buffer BYTES    socket buffer to ask the kernel for (default 268435456)\n"
	"  --buffers N               block buffers of 1 MiB between socket and disk (default 64)\n"
	"\n"
	"Exit status: 0 stopped cleanly (lost postcards are data: see the summary), 1 not all that was "
	"received\n"
	"could be stored or the summary not written, 2 could not start.\n";

enum {
	OPTION_LISTEN = 1,
	OPTION_OUTPUT,
	OPTION_SUMMARY,
	OPTION_STATUS,
	OPTION_DISCARD,
	OPTION_SYNTHETIC,
	OPTION_RECEIVE_BUFFER,
	OPTION_BUFFERS,
	OPTION_HELP,
};

static const struct option known[] = {
	{"listen", required_argument, NULL, OPTION_LISTEN},
	{"output", required_argument, NULL, OPTION_OUTPUT},
	{"summary", required_argument, NULL, OPTION_SUMMARY},
	{"status", no_argument, NULL, OPTION_STATUS},
	{"discard", no_argument, NULL, OPTION_DISCARD},
	{"synthetic", required_argument, NULL, OPTION_SYNTHETIC},
	{"receive-buffer", required_argument, NULL, OPTION_RECEIVE_BUFFER},
	{"buffers", required_argument, NULL, OPTION_BUFFERS},
	{"help", no_argument, NULL, OPTION_HELP},
	{0},
};

static int set(struct options *options, int option, const char *value)
{
	switch (option) {
	case OPTION_LISTEN:
		return address_parse("--listen", value, &options->listen);
	case OPTION_OUTPUT:
		options->output = value;
		return 0;
	case OPTION_SUMMARY:
		options->summary = value;
		return 0;
	case OPTION_STATUS:
		options->status = true;
		return 0;
	case OPTION_DISCARD:
		options->discard = true;
		return 0;
	case OPTION_SYNTHETIC:
		return number_parse("--synthetic", value, 1, 1ULL << 40, &options->synthetic_count);
	case OPTION_RECEIVE_BUFFER:
		return number_parse("--receive-buffer", value, 1, MAX_RECEIVE_BUFFER_BYTES,
				    &options->receive_buffer_bytes);
	case OPTION_BUFFERS:
		/* Two: one being filled while the other is written. */
		return number_parse("--buffers", value, 2, MAX_BUFFERS, &options->buffers);
	case OPTION_HELP:
		fputs(help_text, stdout);
		options->help = true;
		return 0;
	}
	return -EINVAL;
}

static const char *misfit(const struct options *options)
{
	bool listens = *options->listen.text;

	if (options->synthetic_count && (listens || options->discard || !options->output))
		return "--synthetic stores generated postcards: it takes --output, and neither --listen nor "
		       "--discard";
	if (options->synthetic_count)
		return NULL;
	if (!listens)
		return "where to listen is missing: add --listen [ADDRESS]:PORT";
	if (options->discard && options->output)
		return "--discard stores nothing: leave out --output or --discard";
	if (!options->discard && (!options->output || !options->summary))
		return "where to store is missing: add --output FILE and --summary FILE (or --discard)";
	if (options->output && options->summary && !strcmp(options->output, options->summary))
		return "--output and --summary name the same file: choose two";
	return NULL;
}

int options_parse(struct options *options, int argc, char **argv)
{
	const char *problem;
	int option, err;

	*options = (struct options){
		.receive_buffer_bytes = DEFAULT_RECEIVE_BUFFER_BYTES,
		.buffers = DEFAULT_BUFFERS,
	};
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":", known, NULL)) != -1) {
		if (option == '?' || option == ':') {
			complain("%s: %s; collector --help lists the options", argv[optind - 1],
				 option == ':' ? "its value is missing"
					       : "no such option, or a value it does not take");
			return -EINVAL;
		}
		err = set(options, option, optarg);
		if (err || options->help)
			return err;
	}
	if (optind < argc) {
		complain("%s: not an option; collector --help lists the options", argv[optind]);
		return -EINVAL;
	}
	problem = misfit(options);
	if (problem) {
		complain("%s", problem);
		return -EINVAL;
	}
	return 0;
}
