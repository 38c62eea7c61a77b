// SPDX-License-Identifier: MIT
// The postcard generator's command line and result.
#include "generator.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/options.h"
#include "lib/report.h"

const char *const program_name = "postcard_generator";

static const char help_text[] =
	"postcard_generator --to ADDRESS:PORT --count N [options]\n"
	"\n"
	"Sends N correct postcards with consecutive numbers, and prints its result as a JSON object.\n"
	"\n"
	"  --rate R                  postcards per second (default: unlimited)\n"
	"  --source ADDRESS:PORT     address to send from (default: the kernel chooses)\n"
	"  --first-seq S             number of the first postcard (default 0)\n"
	"  --batch B                 datagrams per system call, 1 to 64 (default 64; fewer at low rates)\n"
	"  --method segment|sendmmsg (default: segment if the kernel can)\n";

static const char *const method_names[] = {
	[METHOD_AUTO] = "auto", [METHOD_SEGMENT] = "segment", [METHOD_SENDMMSG] = "sendmmsg", NULL};

static int parse(struct order *order, int argc, char **argv)
{
	const struct option_row rows[] = {
		OPTION_NEEDED_READ("to", "ADDRESS:PORT", address_read, &order->to),
		OPTION_NEEDED_NUMBER("count", &order->count, 1, 1ULL << 40),
		OPTION_NUMBER("rate", &order->rate_per_s, 1, 1000000000),
		OPTION_READ("source", address_read, &order->source),
		OPTION_NUMBER("first-seq", &order->first_seq, 0, UINT32_MAX),
		OPTION_NUMBER("batch", &order->batch, 1, GENERATOR_MAX_BATCH),
		OPTION_CHOICE("method", &order->method, method_names),
		OPTIONS_END,
	};
	int err;

	*order = (struct order){.batch = GENERATOR_MAX_BATCH};
	err = options_read(rows, help_text, argc, argv);
	if (!err && !order->to.length) {
		complain("--to %s: give an address, too", order->to.text);
		return -EINVAL;
	}
	if (!err && order->source.length && order->source.storage.ss_family != order->to.storage.ss_family) {
		complain("--source %s and --to %s: give both as IPv4, or both as IPv6", order->source.text,
			 order->to.text);
		err = -EINVAL;
	}
	return err;
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
	int err = parse(&order, argc, argv);

	if (err)
		return err > 0 ? EXIT_SUCCESS : EXIT_REFUSED;
	err = generator_send(&order, &delivery);
	put_result(&delivery);
	return err ? EXIT_INCOMPLETE : EXIT_SUCCESS;
}
