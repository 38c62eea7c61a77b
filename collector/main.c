// SPDX-License-Identifier: MIT
// The collector: receives, stamps, checks and stores postcards, and accounts for each of them.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "collect.h"
#include "options.h"
#include "lib/commit.h"
#include "lib/report.h"

const char *const program_name = "collector";

static int run(const struct options *options)
{
	static struct collector collector;
	int err;

	if (options->summary && !access(options->summary, F_OK)) {
		complain(
			"summary %s: it exists and is never overwritten: move it away or choose another name",
			options->summary);
		return EXIT_REFUSED;
	}
	if ((options->summary && report_check(options->summary)) || collector_open(&collector, options))
		return EXIT_REFUSED;
	puts("ready");
	fflush(stdout);

	collector_run(&collector);

	err = collector_close(&collector);
	if (summary_write(options->summary, &collector))
		err = -1;
	free(collector.sequences);
	return err ? EXIT_INCOMPLETE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct options options;
	int err = options_parse(&options, argc, argv);

	if (err)
		return err > 0 ? EXIT_SUCCESS : EXIT_REFUSED;
	signal(SIGXFSZ, SIG_IGN); /* a file size limit then fails write(2) and counts like a full disk */
	return run(&options);
}
