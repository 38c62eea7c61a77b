// SPDX-License-Identifier: MIT
// Registers congestion controls of BPF objects, and bounds the congestion windows of a namespace's connections. All of
// it lasts as long as this process: the kernel removes each with its last file descriptor, even after kill -9.
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
	"usage: congestion_control [--algorithm NAME=OBJECT]... [--seed N] [--window SEGMENTS] [--check]\n"
	"Registers TCP congestion controls until SIGTERM or SIGINT.\n"
	"  --algorithm NAME=OBJECT  register OBJECT's struct tcp_congestion_ops as NAME (up to 15 "
	"characters)\n"
	"  --seed N                 of the algorithms' random draws (default 0)\n"
	"  --window SEGMENTS        bound the congestion window of every connection that this network "
	"namespace opens\n"
	"  --check                  load and verify only\n";

struct request {
	struct algorithm algorithms[MOST_ALGORITHMS];
	size_t count;
	uint64_t seed, window_segments;
	bool check;
};

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
	struct window window = {0};
	const struct option_row rows[] = {
		OPTION_READ("algorithm", read_algorithm, &request),
		OPTION_NUMBER("seed", &request.seed, 0, UINT64_MAX),
		OPTION_NUMBER("window", &request.window_segments, 1, MOST_WINDOW_SEGMENTS),
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
	if (!err && request.window_segments && !request.check)
		err = window_bound(&window, (uint32_t)request.window_segments);
	if (!err && !request.check) {
		wait_for_signal(&awaited);
		err = window_failures(&window);
		if (err)
			complain("--window %u: the kernel refused the bound for %d connections",
				 (unsigned int)request.window_segments, err);
		err = err ? -EIO : 0;
	} else if (err) {
		err = -EINVAL;
	}
	window_release(&window);
	while (request.count)
		algorithm_release(&request.algorithms[--request.count]);
	return err == -EIO ? EXIT_INCOMPLETE : err ? EXIT_REFUSED : 0;
}
