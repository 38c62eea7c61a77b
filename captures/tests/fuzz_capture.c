// SPDX-License-Identifier: MIT
// libFuzzer: reads arbitrary bytes as a capture, and any frames in it; checks what the records promise.
#include <stdlib.h>
#include <string.h>

#include "captures/dissect.h"

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void check(const struct frame *frame)
{
	struct captured_packet packet;
	const uint8_t *payload;
	uint32_t bytes;

	payload = dissect(frame, &packet, &bytes);
	require(!payload == !(bytes || payload));
	if (bytes)
		require(payload >= frame->bytes && payload + bytes <= frame->bytes + frame->captured_bytes);
	require(packet.flags & CAPTURED_HAS_IP || !packet.ip_bytes);
	require(packet.payload_bytes <= packet.ip_bytes);
	require(!(packet.flags & CAPTURED_HAS_TCP) || packet.flags & CAPTURED_HAS_PORTS);
	require(packet.flags & CAPTURED_HAS_IP || !(packet.flags & CAPTURED_HAS_PORTS));
}

/* Each frame is copied to memory of its own, so that a read beyond its end is found. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {.fd = -1, .bytes = malloc(size + 1), .end = size};
	struct capture capture;
	struct frame frame;
	uint8_t *copy;

	require(input.bytes);
	memcpy(input.bytes, data, size);
	if (!capture_open(&capture, &input))
		while (capture_next(&capture, &frame)) {
			copy = malloc(frame.captured_bytes + !frame.captured_bytes);
			require(copy);
			memcpy(copy, frame.bytes, frame.captured_bytes);
			frame.bytes = copy;
			check(&frame);
			free(copy);
		}
	capture_close(&capture);
	free(input.bytes);
	return 0;
}
