// SPDX-License-Identifier: MIT
// capture_reader: a capture on stdin becomes records on stdout, and a line of JSON with its counts on stderr.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dissect.h"
#include "lib/options.h"
#include "lib/report.h"

enum { MOST_PAYLOAD_BYTES = 4096, OUTPUT_BYTES = 1 << 20 };

const char *const program_name = "capture_reader";

static const char help_text[] = "capture_reader [--payload N] <CAPTURE >RECORDS\n"
				"\n"
				"Writes the headers of each packet of a pcap or pcapng file, as "
				"wire/captured_packet.def has them, and one line\n"
				"of JSON with counts and the reason for an early end to stderr.\n"
				"\n"
				"  --payload N   behind each record, the first N bytes of the payload of TCP "
				"or UDP, filled up with zeros\n"
				"\n"
				"Exit status: 0 all packets before the end, or before damage, were written; "
				"1 not a capture, or wrong options;\n"
				"2 the records could not be written.\n";

static void print_count(const char *name, uint64_t count)
{
	if (count == UINT64_MAX)
		fprintf(stderr, ", \"%s\": null", name);
	else
		fprintf(stderr, ", \"%s\": %" PRIu64, name, count);
}

/* The damage has no character that JSON would escape: it is of our own words and of strerror. */
static void print_counts(const struct capture *capture)
{
	fprintf(stderr, "{\"damage\": \"%s\", \"untimed\": %" PRIu64 ", \"interfaces\": [", capture->damage,
		capture->untimed);
	for (uint32_t number = 0; number < capture->interfaces; number++) {
		const struct capture_interface *interface = &capture->interface[number];

		fprintf(stderr, "%s{\"link_type\": %u, \"is_known\": %s, \"snap_bytes\": %u",
			number ? ", " : "", interface->link_type,
			dissect_knows(interface->link_type) ? "true" : "false", interface->snap_bytes);
		print_count("frames", interface->frames);
		print_count("received", interface->received);
		print_count("dropped", interface->dropped);
		fprintf(stderr, "}");
	}
	fprintf(stderr, "]}\n");
}

static int copy(struct capture *capture, uint64_t payload_bytes)
{
	static uint8_t record[CAPTURED_PACKET_BYTES + MOST_PAYLOAD_BYTES];
	struct captured_packet packet;
	const uint8_t *payload;
	struct frame frame;
	uint32_t bytes;

	while (capture_next(capture, &frame)) {
		payload = dissect(&frame, &packet, &bytes);
		bytes = bytes < payload_bytes ? bytes : (uint32_t)payload_bytes;
		packet.payload_captured = (uint16_t)bytes;
		memcpy(record, &packet, sizeof(packet));
		if (bytes)
			memcpy(record + sizeof(packet), payload, bytes);
		memset(record + sizeof(packet) + bytes, 0, payload_bytes - bytes);
		if (fwrite(record, sizeof(packet) + payload_bytes, 1, stdout) != 1)
			return -errno;
	}
	return fclose(stdout) ? -errno : 0; /* so that a reader of both pipes comes to read the counts */
}

int main(int argc, char **argv)
{
	uint64_t payload_bytes = 0;
	const struct option_row rows[] = {OPTION_NUMBER("payload", &payload_bytes, 0, MOST_PAYLOAD_BYTES),
					  OPTIONS_END};
	int err = options_read(rows, help_text, argc, argv);
	struct capture capture;
	struct input input;

	if (err)
		return err > 0 ? EXIT_SUCCESS : EXIT_REFUSED;
	setvbuf(stdout, NULL, _IOFBF, OUTPUT_BYTES);
	err = input_open(&input, STDIN_FILENO);
	if (err) {
		complain("no memory");
		return EXIT_REFUSED;
	}
	if (capture_open(&capture, &input)) {
		print_counts(&capture);
		err = EXIT_REFUSED;
	} else {
		err = copy(&capture, payload_bytes);
		if (err)
			complain("cannot write: %s", strerror(-err));
		else
			print_counts(&capture);
		err = err ? EXIT_INCOMPLETE : EXIT_SUCCESS;
	}
	capture_close(&capture);
	free(input.bytes);
	return err;
}
