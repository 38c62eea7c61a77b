/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * A translated program behind a pipe, for tests: a command on each line; a reply ends in a line ".".
 *
 *   request TEXT        a request of the control plane
 *   mirror SESSION PORT
 *   std NAME VALUE      enq_qdepth or a global timestamp, as the core would set it, of all frames from now on
 *   frame PORT HEX      a frame through ingress, clones, egress and deparser: "KIND PORT HEX" for each output
 *
 * A frame has memory of exactly its size behind the headroom, so that a sanitizer detects every access beyond.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline.h"

enum { MAX_LINE = 1 << 17, MAX_REPLY = 1 << 20, MAX_SESSIONS = 16 };

struct frame {
	struct packet packet;
	uint8_t *memory;
};

static struct intrinsic egress_std;
static int mirror_port[MAX_SESSIONS];

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "harness: %s\n", what);
	abort();
}

static struct frame *frame_new(const uint8_t *bytes, size_t count)
{
	struct frame *frame = calloc(1, sizeof(*frame));

	must(frame, "no memory");
	frame->memory = malloc(PIPELINE_HEADROOM + count);
	frame->packet.phv = aligned_alloc(16, (pipeline_phv_bytes + 15) / 16 * 16);
	must(frame->memory && frame->packet.phv, "no memory");
	memset(frame->packet.phv, 0xa5, pipeline_phv_bytes); /* as if an earlier packet had left its fields */
	if (count)
		memcpy(frame->memory + PIPELINE_HEADROOM, bytes, count);
	frame->packet.frame = frame->memory + PIPELINE_HEADROOM;
	frame->packet.frame_bytes = (uint32_t)count;
	return frame;
}

static void frame_free(struct frame *frame)
{
	free(frame->packet.phv);
	free(frame->memory);
	free(frame);
}

static void deparse_and_print(struct pipeline *pipeline, struct frame *frame, const char *kind, unsigned port)
{
	const uint8_t *payload = frame->packet.frame + frame->packet.payload_offset;
	size_t payload_bytes = frame->packet.frame_bytes - frame->packet.payload_offset;
	uint8_t *before = malloc(payload_bytes ? payload_bytes : 1);

	must(before, "no memory");
	memcpy(before, payload, payload_bytes);
	pipeline_deparse(pipeline, &frame->packet);
	must(!memcmp(before, payload, payload_bytes), "the deparser changed the payload");
	must(frame->packet.frame >= frame->memory, "the deparser wrote before the headroom");
	must(frame->packet.frame_bytes <= frame->packet.payload_offset + payload_bytes,
	     "the frame became too long");
	printf("%s %u ", kind, port);
	for (uint32_t i = 0; i < frame->packet.frame_bytes; i++)
		printf("%02x", frame->packet.frame[i]);
	printf("\n");
	free(before);
}

static int session_port(uint32_t session)
{
	return session < MAX_SESSIONS ? mirror_port[session] : 0;
}

/* Egress and deparser, then the same for an egress clone. */
static void leave(struct pipeline *pipeline, struct frame *frame, const char *kind, unsigned port)
{
	struct packet *packet = &frame->packet;
	struct frame *clone = NULL;

	packet->std.egress_port = (uint16_t)port;
	packet->std.egress_global_timestamp = egress_std.egress_global_timestamp;
	packet->std.enq_qdepth = egress_std.enq_qdepth;
	pipeline_egress(pipeline, packet);
	if (packet->std.clone && session_port(packet->std.clone_session)) {
		clone = frame_new(packet->frame + packet->payload_offset,
				  packet->frame_bytes - packet->payload_offset);
		pipeline_clone(pipeline, packet, &clone->packet, INSTANCE_EGRESS_CLONE,
			       packet->std.clone_fields);
		port = (unsigned)session_port(packet->std.clone_session);
	}
	if (packet->std.egress_spec == PIPELINE_DROP_PORT)
		printf("dropped egress -\n");
	else
		deparse_and_print(pipeline, frame, kind, packet->std.egress_port);
	if (clone) {
		leave(pipeline, clone, "egress_clone", port);
		frame_free(clone);
	}
}

static void run_frame(struct pipeline *pipeline, const uint8_t *bytes, size_t count, unsigned port)
{
	struct frame *frame = frame_new(bytes, count), *clone = NULL;
	struct packet *packet = &frame->packet;

	memset(&packet->std, 0x5a, sizeof(packet->std));
	packet->std.ingress_port = (uint16_t)port;
	packet->std.packet_length = (uint32_t)count;
	packet->std.ingress_global_timestamp = egress_std.ingress_global_timestamp;
	pipeline_ingress(pipeline, packet);
	must(packet->payload_offset <= count, "the parser took more than there is");
	must(packet->payload_offset <= pipeline_max_parse_bytes, "the parser read further than it said");
	if (packet->std.clone && session_port(packet->std.clone_session)) {
		clone = frame_new(bytes, count < pipeline_max_parse_bytes ? count : pipeline_max_parse_bytes);
		pipeline_clone(pipeline, packet, &clone->packet, INSTANCE_INGRESS_CLONE,
			       packet->std.clone_fields);
		must(clone->packet.payload_offset == packet->payload_offset,
		     "the clone was parsed differently");
		port = (unsigned)session_port(packet->std.clone_session);
	}
	if (packet->std.egress_spec == PIPELINE_DROP_PORT)
		printf("dropped ingress -\n");
	else
		leave(pipeline, frame, "normal", packet->std.egress_spec);
	if (clone) {
		leave(pipeline, clone, "ingress_clone", port);
		frame_free(clone);
	}
	frame_free(frame);
}

static size_t read_hex(const char *text, uint8_t *bytes)
{
	size_t count = 0;
	unsigned value;

	while (sscanf(text + 2 * count, "%2x", &value) == 1)
		bytes[count++] = (uint8_t)value;
	return count;
}

int main(void)
{
	static char line[MAX_LINE], reply[MAX_REPLY];
	static uint8_t bytes[MAX_LINE];
	size_t memory_bytes = (pipeline_memory_bytes() + 15) / 16 * 16;
	void *memory = aligned_alloc(16, memory_bytes);
	struct pipeline *pipeline;
	unsigned long number, other;
	char name[64];
	int at;

	must(memory, "no memory");
	memset(memory, 0xa5, memory_bytes);
	pipeline = pipeline_create(memory);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, "request ", 8)) {
			size_t length = pipeline_control(pipeline, line + 8, reply, sizeof(reply));

			must(length == strlen(reply), "the reply's length is wrong");
			fputs(reply, stdout);
		} else if (sscanf(line, "mirror %lu %lu", &number, &other) == 2 && number < MAX_SESSIONS) {
			mirror_port[number] = (int)other;
		} else if (sscanf(line, "std %63s %lu", name, &number) == 2) {
			if (!strcmp(name, "enq_qdepth"))
				egress_std.enq_qdepth = (uint32_t)number;
			else if (!strcmp(name, "ingress_global_timestamp"))
				egress_std.ingress_global_timestamp = number;
			else if (!strcmp(name, "egress_global_timestamp"))
				egress_std.egress_global_timestamp = number;
			else
				must(false, "no such field");
		} else if (sscanf(line, "frame %lu %n", &number, &at) == 1) {
			run_frame(pipeline, bytes, read_hex(line + at, bytes), (unsigned)number);
		} else {
			must(false, "no such command");
		}
		puts(".");
		fflush(stdout);
	}
	free(memory);
	return 0;
}
