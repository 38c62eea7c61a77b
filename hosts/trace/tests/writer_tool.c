// SPDX-License-Identifier: MIT
// Writes numbered records through block_writer. A file size limit simulates a full disk from record FULL_FROM on, up to
// but excluding record FULL_TO.
//     writer_tool PATH RECORDS FLUSH_EVERY FULL_FROM FULL_TO
// Prints "stored unwritten write_errors blocks bytes". Exits with 2 if the writer reports missing records, with 1 if it
// cannot create the file.
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "../../../lib/report.h"
#include "../../../wire/tcp_record.h"
#include "../block_writer.h"

enum { TORN_BYTES = 100 }; /* room that the limit leaves for the first failing block: more than its header */

const char *const program_name = "writer_tool";

static void limit_file(uint64_t bytes)
{
	struct rlimit limit;

	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = bytes;
	setrlimit(RLIMIT_FSIZE, &limit);
}

int main(int argc, char **argv)
{
	struct block_writer writer;
	uint64_t records, every, full_from, full_to;
	int err;

	if (argc != 6)
		return EXIT_REFUSED;
	records = strtoull(argv[2], NULL, 10);
	every = strtoull(argv[3], NULL, 10);
	full_from = strtoull(argv[4], NULL, 10);
	full_to = strtoull(argv[5], NULL, 10);
	signal(SIGXFSZ, SIG_IGN);

	err = block_writer_open(&writer, argv[1], BLOCK_TCP, TCP_RECORD_VERSION, TCP_RECORD_BYTES);
	if (err)
		return EXIT_REFUSED;
	for (uint64_t i = 0; i < records; i++) {
		struct tcp_record record = {.mono_ns = i, .cwnd_packets = (uint32_t)i};

		if (full_from < full_to && i == full_from)
			limit_file(writer.file.bytes + TORN_BYTES);
		if (full_from < full_to && i == full_to)
			limit_file(RLIM_INFINITY);
		memcpy(block_writer_slot(&writer), &record, sizeof(record));
		writer.lost_records = i / 10;
		block_writer_added(&writer);
		if (every && (i + 1) % every == 0)
			block_writer_flush(&writer);
	}
	err = block_writer_close(&writer);
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", writer.stored,
	       writer.unwritten, writer.write_errors, writer.blocks, writer.file.bytes);
	return err ? EXIT_INCOMPLETE : 0;
}
