// SPDX-License-Identifier: MIT
// Registers congestion controls of BPF objects, and bounds congestion windows of a namespace's connections.
// Registrations and bounds end with this process, even after kill -9: file descriptors of the process hold them.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "../../lib/options.h"
#include "../../lib/report.h"
#include "algorithm.h"
#include "window.h"

enum { MOST_ALGORITHMS = 16, MOST_WINDOW_SEGMENTS = 1000000 };

const char *const program_name = "congestion_control";

static const char USAGE[] =
	"usage: congestion_control [--algorithm NAME=OBJECT]... [--seed N] [--window FIRST-LAST=SEGMENTS]... "
	"[--check]\n"
	"Registers TCP congestion controls until SIGTERM or SIGINT.\n"
	"  --algorithm NAME=OBJECT  register OBJECT's struct tcp_congestion_ops as NAME (up to 15 "
	"characters)\n"
	"  --seed N                 seed of the algorithms' random draws (default 0)\n"
	"  --window FIRST-LAST=SEGMENTS  bound the congestion windows of connections that this network "
	"namespace opens\n"
	"                           to these server ports; may be repeated\n"
	"  --check                  load and verify only\n";

struct request {
	struct algorithm algorithms[MOST_ALGORITHMS];
	size_t count;
	uint64_t seed;
	bool with_window;
	bool check;
};

static struct window window; /* too large for the stack */

static int read_algorithm(void *to, const char *option, char *text)
{
	struct request *request = to;
	struct algorithm *algorithm = &request->algorithms[request->count];
	char *equals = strchr(text, '=');

	if (!equals || equals == text || (size_t)(equals - text) >= sizeof(algorithm->name) || !equals[1]) {
		complain("%s '%s': give NAME=OBJECT, NAME with 1 to 15 characters", option, text);
		return -EINVAL;
	}
	if (request->count == MOST_ALGORITHMS) {
		complain("%s '%s': give %d at most", option, text, MOST_ALGORITHMS);
		return -EINVAL;
	}
	memcpy(algorithm->name, text, (size_t)(equals - text));
	algorithm->path = equals + 1;
	request->count++;
	return 0;
}

static int read_window(void *to, const char *option, char *text)
{
	struct request *request = to;
	char copy[64], *rest = copy;
	const char *first_text, *last_text;
	uint64_t first, last, segments;

	snprintf(copy, sizeof(copy), "%s", text);
	first_text = strsep(&rest, "-");
	last_text = rest ? strsep(&rest, "=") : NULL;
	if (!last_text || !rest || !whole_number(first_text, 1, WINDOW_PORTS - 1, &first) ||
	    !whole_number(last_text, first, WINDOW_PORTS - 1, &last) ||
	    !whole_number(rest, 1, MOST_WINDOW_SEGMENTS, &segments)) {
		complain("%s '%s': give FIRST-LAST=SEGMENTS, server ports from 1 to %d and 1 to %d segments",
			 option, text, WINDOW_PORTS - 1, MOST_WINDOW_SEGMENTS);
		return -EINVAL;
	}
	for (uint64_t port = first; port <= last; port++)
		window.segments[port] = (uint32_t)segments;
	request->with_window = true;
	return 0;
}

static void wait_for_signal(const sigset_t *awaited)
{
	int signal;

	puts("ready");
	fflush(stdout);
	sigwait(awaited, &signal);
}

int main(int argc, char **argv)
{
	struct request request = {0};
	const struct option_row rows[] = {
		OPTION_READ("algorithm", read_algorithm, &request),
		OPTION_NUMBER("seed", &request.seed, 0, UINT64_MAX),
		OPTION_READ("window", read_window, &request),
		OPTION_FLAG("check", &request.check),
		OPTIONS_END,
	};
	int err = options_read(rows, USAGE, argc, argv);
	sigset_t awaited;

	if (err)
		return err > 0 ? 0 : EXIT_REFUSED;
	sigemptyset(&awaited);
	sigaddset(&awaited, SIGTERM);
	sigaddset(&awaited, SIGINT);
	sigprocmask(SIG_BLOCK, &awaited, NULL);

	for (size_t at = 0; !err && at < request.count; at++) {
		err = algorithm_load(&request.algorithms[at], request.seed);
		if (!err && !request.check)
			err = algorithm_register(&request.algorithms[at]);
	}
	if (!err && request.with_window && !request.check)
		err = window_bound(&window);
	if (!err && !request.check) {
		wait_for_signal(&awaited);
		err = window_failures(&window);
		if (err)
			complain("--window: the kernel refused the bound for %d connections", err);
		err = err ? -EIO : 0;
	} else if (err) {
		err = -EINVAL;
	}
	window_release(&window);
	while (request.count)
		algorithm_release(&request.algorithms[--request.count]);
	return err == -EIO ? EXIT_INCOMPLETE : err ? EXIT_REFUSED : 0;
}
