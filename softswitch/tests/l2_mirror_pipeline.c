/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * A pipeline written by hand, for tests of the core. It forwards 02:bf:..:NN to port NN, drops other destinations, and
 * mirrors to session 1 on request. A clone leaves as a record of the packet's v1model metadata. In frames of type
 * 0x88b5 (local experiments) byte 14 requests special treatment; its upper half is the priority.
 *
 * Control: `test mirror MASK` (1: every packet in ingress, 2: in egress, 4: copies are mirrored again).
 */
#include "../runtime/freestanding.h"
#include "../runtime/pipeline.h"
#include "../runtime/text.h"

enum {
	MIRROR_INGRESS = 1,
	MIRROR_EGRESS = 2,
	MIRROR_COPIES = 4,
	ASK_INGRESS_DROP = 1,
	ASK_EGRESS_DROP = 2,
	ASK_MULTICAST = 4,
	ASK_ABSENT_SESSION = 8,
	SESSION = 1,
	PARSED_BYTES = 15,
	ASK_PRIORITY_SHIFT = 4,
	QUEUES = 8, /* of a port, in the registers */
	RECORD_BYTES = 82,
	FIELD_LIST = 7,
};

struct pipeline {
	uint64_t mirror;
	uint32_t queue_packets[PIPELINE_PORTS * QUEUES];
	uint32_t queue_bytes[PIPELINE_PORTS * QUEUES];
};

/* The length of a packet's queue, as in the registers. */
struct length {
	uint32_t packets;
	uint32_t bytes;
};

/* A clone copies the struct. `kept`: the metadata of the original packet, also in clones of clones. */
struct phv {
	uint8_t parsed[PARSED_BYTES];
	uint8_t asked;
	struct intrinsic kept;
	struct length at_ingress; /* without this packet */
	struct length at_egress;  /* behind this packet */
};

const char pipeline_program_name[] = "l2_mirror";
const char pipeline_program_digest[] = "0000000000000000000000000000000000000000000000000000000000000000";
const uint32_t pipeline_phv_bytes = sizeof(struct phv);
const uint32_t pipeline_headroom_bytes = 256;
const uint32_t pipeline_max_parse_bytes = PARSED_BYTES;
const uint32_t pipeline_ns_per_tick = 1;
const bool pipeline_sets_qid = false;

size_t pipeline_memory_bytes(void)
{
	return sizeof(struct pipeline);
}

struct pipeline *pipeline_create(void *memory, const uint64_t *now_ns)
{
	(void)now_ns;
	memset(memory, 0, sizeof(struct pipeline));
	return memory;
}

struct pipeline_queue_registers pipeline_queue_registers(struct pipeline *pipeline)
{
	return (struct pipeline_queue_registers){pipeline->queue_packets, pipeline->queue_bytes, QUEUES};
}

static struct length length_of(const struct pipeline *pipeline, uint16_t port, uint8_t qid)
{
	uint32_t at = port * QUEUES + qid % QUEUES;

	return (struct length){pipeline->queue_packets[at], pipeline->queue_bytes[at]};
}

static void parse(struct packet *packet)
{
	struct phv *phv = packet->phv;
	uint32_t bytes = packet->frame_bytes < PARSED_BYTES ? packet->frame_bytes : PARSED_BYTES;

	memset(phv, 0, sizeof(*phv));
	memcpy(phv->parsed, packet->frame, bytes);
	packet->payload_offset = bytes;
	if (bytes == PARSED_BYTES && phv->parsed[12] == 0x88 && phv->parsed[13] == 0xb5)
		phv->asked = phv->parsed[14];
}

static void request_clone(struct packet *packet, const struct phv *phv)
{
	packet->std.clone = true;
	packet->std.clone_session = phv->asked & ASK_ABSENT_SESSION ? SESSION + 1 : SESSION;
	packet->std.clone_fields = FIELD_LIST;
}

void pipeline_ingress(struct pipeline *pipeline, struct packet *packet)
{
	struct phv *phv = packet->phv;

	parse(packet);
	packet->std.egress_spec = phv->parsed[5];
	if (phv->parsed[0] != 0x02 || phv->parsed[1] != 0xbf || phv->asked & ASK_INGRESS_DROP)
		packet->std.egress_spec = PIPELINE_DROP_PORT;
	packet->std.priority = phv->asked >> ASK_PRIORITY_SHIFT;
	phv->at_ingress = length_of(pipeline, packet->std.egress_spec, packet->std.priority);
	packet->std.mcast_grp = phv->asked & ASK_MULTICAST ? 1 : 0;
	if (pipeline->mirror & MIRROR_INGRESS)
		request_clone(packet, phv);
}

void pipeline_ingress_again(struct pipeline *pipeline, struct packet *packet, enum instance_type kind,
			    uint32_t fields)
{
	(void)kind;
	(void)fields;
	packet->std = (struct intrinsic){.packet_length = packet->frame_bytes};
	pipeline_ingress(pipeline, packet);
}

void pipeline_egress(struct pipeline *pipeline, struct packet *packet)
{
	struct phv *phv = packet->phv;
	bool copy = packet->std.instance_type != INSTANCE_NORMAL;

	if (!copy)
		phv->at_egress = length_of(pipeline, packet->std.egress_port, packet->std.qid);
	if (!copy && phv->asked & ASK_EGRESS_DROP)
		packet->std.egress_spec = PIPELINE_DROP_PORT;
	if (pipeline->mirror & (copy ? MIRROR_COPIES : MIRROR_EGRESS))
		request_clone(packet, phv);
	if (copy)
		packet->std.truncate_bytes = RECORD_BYTES;
}

static uint8_t *put(uint8_t *at, uint64_t value, int bytes)
{
	while (bytes--)
		*at++ = (uint8_t)(value >> 8 * bytes);
	return at;
}

static void write_record(struct packet *packet, const struct phv *phv)
{
	const struct intrinsic *std = &phv->kept;
	uint8_t *at = packet->frame;

	memset(at, 0, RECORD_BYTES);
	at = put(at, 0x02bf00000003, 6);
	at = put(at, 0x02bf00000103, 6);
	at = put(at, 0x88b6, 2);
	at = put(at, packet->std.instance_type, 2);
	at = put(at, std->ingress_port, 2);
	at = put(at, std->egress_port, 2);
	at = put(at, std->packet_length, 4);
	at = put(at, std->enq_qdepth, 4);
	at = put(at, std->deq_qdepth, 4);
	at = put(at, std->enq_timestamp, 4);
	at = put(at, std->deq_timedelta, 4);
	at = put(at, std->ingress_global_timestamp, 8);
	at = put(at, std->egress_global_timestamp, 8);
	at = put(at, std->clone_fields, 4);
	at = put(at, packet->frame_bytes, 4);
	at = put(at, phv->at_ingress.packets, 4);
	at = put(at, phv->at_ingress.bytes, 4);
	at = put(at, phv->at_egress.packets, 4);
	at = put(at, phv->at_egress.bytes, 4);
	at = put(at, std->qid, 2);
	packet->frame_bytes = RECORD_BYTES;
}

void pipeline_deparse(struct pipeline *pipeline, struct packet *packet)
{
	(void)pipeline;
	if (packet->std.instance_type != INSTANCE_NORMAL)
		write_record(packet, packet->phv);
}

void pipeline_clone(struct pipeline *pipeline, const struct packet *original, struct packet *copy,
		    enum instance_type kind, uint32_t fields)
{
	const struct phv *from = original->phv;
	struct phv *to = copy->phv;

	(void)pipeline;
	memcpy(to, from, sizeof(*to));
	if (original->std.instance_type == INSTANCE_NORMAL)
		to->kept = original->std;
	to->kept.clone_fields = fields;
	copy->std.instance_type = kind;
	copy->std.packet_length = original->std.packet_length;
	copy->std.ingress_port = original->std.ingress_port;
	copy->payload_offset = 0;
}

size_t pipeline_control(struct pipeline *pipeline, const char *request, char *reply, size_t reply_bytes)
{
	struct words words = {.at = request};
	struct text text;
	uint64_t mask;

	text_start(&text, reply, reply_bytes);
	words_next(&words);
	if (words_is(&words, "test") && words_next(&words) && words_is(&words, "mirror") &&
	    words_next(&words) && words_number(&words, &mask)) {
		pipeline->mirror = mask;
		text_put(&text, "ok\n");
	} else {
		text_format(&text, "error unknown request '%.*s': test mirror MASK\n", (int)words.word_bytes,
			    request);
	}
	return text_end(&text);
}
