// SPDX-License-Identifier: MIT
// connection_table: packets on stdin, in the order of time, become a record for each connection on stdout.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "connections.h"
#include "input.h"
#include "lib/options.h"
#include "lib/report.h"

enum { OUTPUT_BYTES = 1 << 20 };

const char *const program_name = "connection_table";

static const char help_text[] =
	"connection_table --rate BPS [--mtu BYTES] [--most N] <PACKETS >CONNECTIONS\n"
	"\n"
	"Reads packets as wire/captured_packet.def has them, in the order of time, and "
	"writes the connections of\n"
	"wire/connection.def as they end.\n"
	"\n"
	"  --rate BPS    rate of the link, in bits per second\n"
	"  --mtu BYTES   longer IP packets are of GRO or TSO (default 1500)\n"
	"  --most N      so many may be open at once (default 200000): the one that was idle "
	"longest is written first\n"
	"\n"
	"Exit status: 0 done; 1 wrong options, or no memory; 2 the packets ended within a "
	"record, or nothing could be written.\n";

static void write_row(void *to, const struct connection *row)
{
	fwrite(row, sizeof(*row), 1, to); /* ferror() tells */
}

static int copy(struct input *input, struct connections *all)
{
	struct captured_packet packet;
	const uint8_t *bytes;

	while ((bytes = input_see(input, sizeof(packet)))) {
		memcpy(&packet, bytes, sizeof(packet));
		input_take(input, sizeof(packet));
		if (connections_add(all, &packet)) {
			complain("no memory for more connections; --most bounds them");
			return EXIT_REFUSED;
		}
		if (ferror(stdout))
			break;
	}
	if (input->error || !input_ended(input)) {
		complain("the packets end within a record");
		return EXIT_INCOMPLETE;
	}
	connections_end(all);
	if (ferror(stdout) || fclose(stdout)) {
		complain("cannot write: %s", strerror(errno));
		return EXIT_INCOMPLETE;
	}
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	uint64_t rate_bps = 0, mtu_bytes = 1500, most = 200000;
	const struct option_row rows[] = {
		OPTION_NEEDED_NUMBER("rate", &rate_bps, 1, 1000000000000000),
		OPTION_NUMBER("mtu", &mtu_bytes, 68, 65575),
		OPTION_NUMBER("most", &most, 1, 1 << 30),
		OPTIONS_END,
	};
	int err = options_read(rows, help_text, argc, argv);
	struct connections_settings settings;
	struct connections *all;
	struct input input;

	if (err)
		return err > 0 ? EXIT_SUCCESS : EXIT_REFUSED;
	setvbuf(stdout, NULL, _IOFBF, OUTPUT_BYTES);
	settings = (struct connections_settings){rate_bps, (uint32_t)mtu_bytes, (uint32_t)most, write_row,
						 stdout};
	all = connections_new(&settings);
	if (!all || input_open(&input, STDIN_FILENO)) {
		complain("no memory");
		return EXIT_REFUSED;
	}
	err = copy(&input, all);
	connections_free(all);
	free(input.bytes);
	return err;
}
