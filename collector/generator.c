// SPDX-License-Identifier: MIT
// The postcard generator's command line and result.
#include "generator.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/report.h"

const char *const program_name = "postcard_generator";

static const char help_text[] =
	"postcard_generator --to ADDRESS:PORT --count N [options]\n"
	"\n"
	"Sends N correct postcards, numbered one by one, and prints what it did as a JSON object.\n"
	"\n"
	"  --rate R                  postcards per second (default: as fast as it goes)\n"
	"  --source ADDRESS:PORT     to send from (default: the kernel chooses)\n"
	"  --first-seq S             number of the first (default 0)\n"
	"  --batch B                 datagrams a system call, 1 to 64 (default 64; fewer at low rates)\n"
	"  --method segment|sendmmsg (default: segment where the kernel can)\n";

enum {
	OPTION_TO = 1,
	OPTION_COUNT,
	OPTION_RATE,
	OPTION_SOURCE,
	OPTION_FIRST,
	OPTION_BATCH,
	OPTION_METHOD,
	OPTION_HELP
};

static const struct option known[] = {
	{"to", required_argument, NULL, OPTION_TO},
	{"count", required_argument, NULL, OPTION_COUNT},
	{"rate", required_argument, NULL, OPTION_RATE},
	{"source", required_argument, NULL, OPTION_SOURCE},
	{"first-seq", required_argument, NULL, OPTION_FIRST},
	{"batch", required_argument, NULL, OPTION_BATCH},
	{"method", required_argument, NULL, OPTION_METHOD},
	{"help", no_argument, NULL, OPTION_HELP},
	{0},
};

static const char *const method_names[] = {"auto", "segment", "sendmmsg"};

static int parse_method(const char *text, enum method *method)
{
	for (*method = METHOD_SEGMENT; *method <= METHOD_SENDMMSG; ++*method)
		if (!strcmp(text, method_names[*method]))
			return 0;
	complain("--method %s: give segment or sendmmsg", text);
	return -EINVAL;
}

static int set(struct order *order, int option, const char *value)
{
	switch (option) {
	case OPTION_TO:
		return address_parse("--to", value, &order->to);
	case OPTION_COUNT:
		return number_parse("--count", value, 1, 1ULL << 40, &order->count);
	case OPTION_RATE:
		return number_parse("--rate", value, 1, 1000000000, &order->rate_per_s);
	case OPTION_SOURCE:
		return address_parse("--source", value, &order->source);
	case OPTION_FIRST:
		return number_parse("--first-seq", value, 0, UINT32_MAX, &order->first_seq);
	case OPTION_BATCH:
		return number_parse("--batch", value, 1, GENERATOR_MAX_BATCH, &order->batch);
	case OPTION_METHOD:
		return parse_method(value, &order->method);
	}
	return -EINVAL;
}

static int parse(struct order *order, int argc, char **argv, bool *help)
{
	int option, err;

	*order = (struct order){.batch = GENERATOR_MAX_BATCH};
	*help = false;
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":", known, NULL)) != -1) {
		if (option == OPTION_HELP) {
			*help = true;
			return 0;
		}
		if (option == '?' || option == ':') {
			complain("%s: no such option, or its value is missing; --help lists the options",
				 argv[optind - 1]);
			return -EINVAL;
		}
		err = set(order, option, optarg);
		if (err)
			return err;
	}
	if (optind < argc || !order->count || !order->to.length) {
		complain("give --to ADDRESS:PORT and --count N, and nothing but options; --help lists them");
		return -EINVAL;
	}
	if (order->source.length && order->source.storage.ss_family != order->to.storage.ss_family) {
		complain("--source %s and --to %s: give two of IPv4 or two of IPv6", order->source.text,
			 order->to.text);
		return -EINVAL;
	}
	return 0;
}

static void put_result(const struct delivery *delivery)
{
	double seconds = (double)delivery->elapsed_ns * 1e-9;

	printf("{\"sent\": %" PRIu64 ", \"retries\": %" PRIu64
	       ", \"seconds\": %.6f, \"postcards_per_s\": %.0f, "
	       "\"method\": \"%s\"}\n",
	       delivery->sent, delivery->retries, seconds, seconds > 0 ? (double)delivery->sent / seconds : 0,
	       method_names[delivery->method]);
}

int main(int argc, char **argv)
{
	struct delivery delivery;
	struct order order;
	bool help;
	int err;

	if (parse(&order, argc, argv, &help))
		return EXIT_SETUP;
	if (help) {
		fputs(help_text, stdout);
		return EXIT_SUCCESS;
	}
	err = generator_send(&order, &delivery);
	put_result(&delivery);
	return err ? EXIT_TROUBLE : EXIT_SUCCESS;
}
