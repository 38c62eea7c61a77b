/* SPDX-License-Identifier: MIT
 * The switch core alone (softswitch/runtime/core.h): frames come from memory, outputs and postcards are dropped. A shared
 * library for bench/core.py, which makes the core and passes its functions.
 */
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "../softswitch/runtime/core.h"

struct core_functions {
	int (*receive)(struct core *, uint64_t, uint16_t, const uint8_t *, uint32_t);
	void (*advance)(struct core *, uint64_t);
	bool (*take_output)(struct core *, uint64_t, struct core_output *);
	void (*release)(struct core *, const struct core_output *);
};

struct loop {
	uint8_t *frame; /* an IPv4 packet: ECN field, source port and checksum change from packet to packet */
	uint32_t bytes;
	uint16_t port; /* of its arrival */
	uint64_t first_ns;
	uint64_t gap_ns;
	uint64_t packets;
	uint64_t outputs; /* result: frames and postcards that left */
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Flow N of 16 has source port 40000 + N; every other packet is ECT(0). Returns the processor time in ns, or 0 if the
 * core refused a frame.
 */
uint64_t core_loop(struct core *core, const struct core_functions *call, struct loop *loop)
{
	uint64_t start_ns = now_ns();
	struct core_output output;

	for (uint64_t at = 0; at < loop->packets; at++) {
		uint64_t time_ns = loop->first_ns + at * loop->gap_ns;

		loop->frame[15] = at & 1 ? 2 : 0;
		loop->frame[35] = (uint8_t)(0x40 + at % 16);
		if (call->receive(core, time_ns, loop->port, loop->frame, loop->bytes))
			return 0;
		call->advance(core, time_ns);
		while (call->take_output(core, time_ns, &output)) {
			call->release(core, &output);
			loop->outputs++;
		}
	}
	return now_ns() - start_ns;
}
