/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The interface between a compiled P4 program and the switch core. For each program the translator writes one C file
 * that implements the pipeline_* functions below. The core knows P4 only through this interface.
 *
 * All code in softswitch/runtime builds freestanding: no libc, no floating point, no allocation, no clock.
 */
#ifndef SOFTSWITCH_PIPELINE_H
#define SOFTSWITCH_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PIPELINE_DROP_PORT = 511, /* v1model's egress_spec of a dropped packet */
	PIPELINE_PORTS = 512,	  /* v1model's ports have 9 bits */
};

/* The origin of a packet: v1model's instance_type, with simple_switch's values. */
enum instance_type {
	INSTANCE_NORMAL = 0,
	INSTANCE_INGRESS_CLONE = 1,
	INSTANCE_EGRESS_CLONE = 2,
	INSTANCE_RECIRCULATED = 4,
	INSTANCE_REPLICATED = 5,
	INSTANCE_RESUBMITTED = 6,
};

/* The fields of v1model's standard_metadata that programs may read, and the requests of the pipeline. Times are in ticks
 * of virtual time; a tick is pipeline_ns_per_tick ns. Values are truncated to v1model's widths.
 */
struct intrinsic {
	uint16_t ingress_port; /* 9 bits */
	uint16_t egress_spec;
	uint16_t egress_port;
	uint16_t qid; /* at egress: the number of the queue that the packet was in */
	uint32_t instance_type;
	uint32_t packet_length; /* of the frame; at egress after headers were added and removed */
	uint32_t enq_timestamp; /* wraps every 4.3 s if ticks are ns, every 71 min if they are us */
	uint32_t enq_qdepth;	/* 19 bits; packets in its queue on enqueue, without this one */
	uint32_t deq_timedelta; /* ticks in the queue and on the link */
	uint32_t deq_qdepth;	/* packets that remain in the queue */
	uint64_t ingress_global_timestamp; /* 48 bits */
	uint64_t egress_global_timestamp;
	uint16_t mcast_grp;
	uint16_t egress_rid;
	uint8_t priority; /* chooses one of the port's queues */
	uint8_t checksum_error;
	uint8_t parser_error;

	/* Requests of the pipeline that ran last (ingress or egress). The core resets clone,
	 * truncate_bytes and again_fields before each pipeline. */
	bool clone; /* to mirror session clone_session, keeping field list clone_fields */
	uint32_t clone_session;
	uint32_t clone_fields;
	uint32_t truncate_bytes; /* UINT32_MAX: none */
	uint32_t again_fields;	 /* resubmit or recirculate, keeping this field list; 0: no */
};

/* One packet between arrival and departure. The core owns the memory; `phv` has pipeline_phv_bytes. */
struct packet {
	uint8_t *frame; /* has pipeline_headroom_bytes free bytes before it when received */
	uint32_t frame_bytes;
	uint32_t payload_offset; /* set by the parser: the first byte of frame behind all headers */
	struct intrinsic std;
	void *phv; /* the program's headers and metadata, aligned to 16 */
};

struct pipeline; /* tables, registers, counters of one program */

extern const char pipeline_program_name[];   /* base name of the P4 file */
extern const char pipeline_program_digest[]; /* hex SHA-256 of the P4 sources without their comments */
extern const uint32_t pipeline_phv_bytes;
extern const uint32_t
	pipeline_headroom_bytes; /* of all headers that the program may write; a multiple of 64 */
extern const uint32_t pipeline_max_parse_bytes; /* no parser path reads further into a frame */
extern const uint32_t pipeline_ns_per_tick;	/* the program's time unit: 1000 as on simple_switch, or 1 */

extern const bool pipeline_sets_qid; /* ingress chooses a queue of the port by std.qid, not by std.priority */

/* A time in the program's time unit, rounded down. */
static inline uint64_t pipeline_ticks(uint64_t time_ns)
{
	return pipeline_ns_per_tick == 1 ? time_ns : time_ns / pipeline_ns_per_tick;
}

size_t pipeline_memory_bytes(void);
/* memory: pipeline_memory_bytes() bytes aligned to 16. now_ns: the time of ingress or egress, for meters. Both are used
 * until the switch ends.
 */
struct pipeline *pipeline_create(void *memory, const uint64_t *now_ns);

/* The registers from which the program reads the queue lengths, with `queues` cells for each of PIPELINE_PORTS ports: cell
 * port * queues + qid is kept equal to the length of that queue. With one cell a port, it has the length of all queues of
 * the port together. NULL: the program does not declare the register.
 */
struct pipeline_queue_registers {
	uint32_t *packets;
	uint32_t *bytes;
	uint32_t queues;
};
struct pipeline_queue_registers pipeline_queue_registers(struct pipeline *pipeline);

/* Parser, checksum verification, ingress. Reads packet->std.{ingress_port,packet_length,ingress_global_timestamp}. */
void pipeline_ingress(struct pipeline *pipeline, struct packet *packet);

/* The same for a packet that passes again, RESUBMITTED (the frame is as it was received) or RECIRCULATED (as it was
 * deparsed). Metadata of field list `fields` is kept, the rest is zero, as in simple_switch: also ingress_port.
 */
void pipeline_ingress_again(struct pipeline *pipeline, struct packet *packet, enum instance_type kind,
			    uint32_t fields);

/* Egress control only. Reads packet->std.{egress_port,...,egress_global_timestamp}. */
void pipeline_egress(struct pipeline *pipeline, struct packet *packet);

/* Checksum update, deparse, truncate: packet->frame and frame_bytes become the frame on the wire. */
void pipeline_deparse(struct pipeline *pipeline, struct packet *packet);

/* Makes `copy` a clone of `original`, as simple_switch does. INSTANCE_INGRESS_CLONE: the caller has put the received
 * frame (at least min(frame_bytes, pipeline_max_parse_bytes) bytes) into copy->frame, which is parsed again.
 * INSTANCE_EGRESS_CLONE, before pipeline_deparse: the caller has put only the payload into copy->frame, with
 * payload_offset 0; the clone gets the headers as egress left them. Metadata of field list `fields` is kept, the rest
 * is zero.
 */
void pipeline_clone(struct pipeline *pipeline, const struct packet *original, struct packet *copy,
		    enum instance_type kind, uint32_t fields);

/* Answers a request for tables, registers, counters or random numbers (docs/control-protocol.md). Writes a
 * NUL-terminated reply of at most reply_bytes and returns its length. A cut reply ends in an error line.
 */
size_t pipeline_control(struct pipeline *pipeline, const char *request, char *reply, size_t reply_bytes);

#endif
