// SPDX-License-Identifier: MIT
// Reads and checks the command line before anything is opened.
#include "options.h"

#include <errno.h>
#include <string.h>

#include "lib/options.h"
#include "lib/report.h"

enum {
	MIB = 1 << 20,
	DEFAULT_RECEIVE_BUFFER_BYTES = 256 * MIB,  /* 0.5 s at 1 M/s; used only while reading is late */
	MAX_RECEIVE_BUFFER_BYTES = 1024 * MIB - 1, /* the kernel doubles it into an int */
	DEFAULT_BUFFERS = 64, /* of 1 MiB each: 1 s of a stalled disk at 700 k postcards/s */
	MAX_BUFFERS = 4096,
};

static const char help_text[] =
	"collector --listen [ADDRESS]:PORT --output FILE --summary FILE [options]\n"
	"collector --listen [ADDRESS]:PORT --discard                    measure only receiving\n"
	"\n"
	"Receives postcards (UDP) and appends them to a raw file of blocks until SIGINT or SIGTERM.\n"
	"\n"
	"  --listen [ADDRESS]:PORT   no address: all of IPv6 and IPv4; IPv6 addresses in brackets\n"
	"  --from ADDRESS            the only sender to accept: datagrams of others are counted, not stored\n"
	"  --output FILE             raw file; must not exist\n"
	"  --summary FILE            counts of received, lost and stored postcards, at the end, as JSON; "
	"must not exist\n"
	"  --status                  a JSON line per second on stdout\n"
	"  --status-ms N             ms between two status lines (default 1000)\n"
	"  --receivers N             threads that receive, up to 16 (default 1)\n"
	"  --receive-buffer BYTES    socket buffers to ask the kernel for, in all (default 268435456)\n"
	"  --buffers N               block buffers of 1 MiB between a receiver and the disk (default 64)\n"
	"\n"
	"Exit status: 0 stopped cleanly (lost postcards are data: see the summary), 1 could not start,\n"
	"2 a received postcard was not stored, a receive call failed, or the summary was not written.\n";

static const char *misfit(const struct options *options)
{
	if (!*options->listen.text)
		return "no address to listen on: add --listen [ADDRESS]:PORT";
	if (*options->source.text && !address_can_reach(&options->source.storage, &options->listen.storage))
		return "--from and --listen have different address families: give both as IPv4, or both as "
		       "IPv6";
	if (options->discard && options->output)
		return "--discard stores nothing: leave out --output or --discard";
	if (!options->discard && (!options->output || !options->summary))
		return "no files to store in: add --output FILE and --summary FILE (or --discard)";
	if (options->output && options->summary && !strcmp(options->output, options->summary))
		return "--output and --summary name the same file: choose two";
	return NULL;
}

int options_parse(struct options *options, int argc, char **argv)
{
	const struct option_row rows[] = {
		OPTION_READ("listen", address_read, &options->listen),
		OPTION_READ("from", address_read_host, &options->source),
		OPTION_TEXT("output", &options->output),
		OPTION_TEXT("summary", &options->summary),
		OPTION_FLAG("status", &options->status),
		OPTION_NUMBER("status-ms", &options->status_ms, 1, 3600000),
		OPTION_FLAG("discard", &options->discard),
		OPTION_NUMBER("receivers", &options->receivers, 1, MAX_RECEIVERS),
		OPTION_NUMBER("receive-buffer", &options->receive_buffer_bytes, 1, MAX_RECEIVE_BUFFER_BYTES),
		/* At least two: one is filled while the other is written. */
		OPTION_NUMBER("buffers", &options->buffers, 2, MAX_BUFFERS),
		OPTIONS_END,
	};
	const char *problem;
	int err;

	*options = (struct options){
		.receive_buffer_bytes = DEFAULT_RECEIVE_BUFFER_BYTES,
		.buffers = DEFAULT_BUFFERS,
		.receivers = 1,
		.status_ms = 1000,
	};
	err = options_read(rows, help_text, argc, argv);
	if (err)
		return err;
	problem = misfit(options);
	if (problem) {
		complain("%s", problem);
		return -EINVAL;
	}
	return 0;
}
