/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The seam between the compiled P4 program and the switch core. The translator writes one C file that
 * implements the pipeline_* functions below for one program; the core calls them and knows no P4.
 *
 * Everything here builds freestanding: no libc, no floating point, no allocation, no clock.
 */
#ifndef SOFTSWITCH_PIPELINE_H
#define SOFTSWITCH_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PIPELINE_HEADROOM = 256,  /* bytes free before every frame: headers may grow by this much */
	PIPELINE_DROP_PORT = 511, /* v1model's egress_spec of a dropped packet */
	PIPELINE_PORTS = 512,	  /* v1model's ports have 9 bits */
};

/* How a packet came into being: v1model's instance_type, with simple_switch's values. */
enum instance_type {
	INSTANCE_NORMAL = 0,
	INSTANCE_INGRESS_CLONE = 1,
	INSTANCE_EGRESS_CLONE = 2,
};

/* v1model's standard_metadata (all that programs may read), and what a pipeline asked for beside it.
 * Times are ticks of virtual time, a tick being pipeline_ns_per_tick; the widths are those of v1model, so values are
 * already cut to them.
 */
struct intrinsic {
	uint16_t ingress_port; /* 9 bits */
	uint16_t egress_spec;
	uint16_t egress_port;
	uint32_t instance_type;
	uint32_t packet_length; /* of the frame; at egress with headers added and removed */
	uint32_t enq_timestamp; /* wraps every 4.3 s if ticks are ns, every 71 min if they are us */
	uint32_t enq_qdepth;	/* 19 bits; packets in the queue on enqueue, without this one */
	uint32_t deq_timedelta; /* ticks in the queue and on the link */
	uint32_t deq_qdepth;	/* packets left behind */
	uint64_t ingress_global_timestamp; /* 48 bits */
	uint64_t egress_global_timestamp;
	uint16_t mcast_grp;
	uint16_t egress_rid;
	uint8_t priority;
	uint8_t checksum_error;
	uint8_t parser_error;

	/* Requests of the pipeline that just ran, reset before each. */
	bool clone; /* to mirror session clone_session, keeping field list clone_fields */
	uint32_t clone_session;
	uint32_t clone_fields;
	uint32_t truncate_bytes; /* UINT32_MAX: none */
};

/* One packet between arrival and departure. The core owns the memory; `phv` has pipeline_phv_bytes. */
struct packet {
	uint8_t *frame; /* PIPELINE_HEADROOM free bytes stand before the frame as it came in */
	uint32_t frame_bytes;
	uint32_t payload_offset; /* set by the parser: first byte of frame that no header took */
	struct intrinsic std;
	void *phv; /* the program's headers and metadata, aligned to 16 */
};

struct pipeline; /* tables, registers, counters of one program */

extern const char pipeline_program_name[];   /* base name of the P4 file */
extern const char pipeline_program_digest[]; /* hex SHA-256 of the P4 sources */
extern const uint32_t pipeline_phv_bytes;
extern const uint32_t pipeline_max_parse_bytes; /* no parser path reads further into a frame */
extern const uint32_t pipeline_ns_per_tick; /* the program's unit of time: 1000 as on simple_switch, or 1 */

/* A time in the program's unit, rounded down. */
static inline uint64_t pipeline_ticks(uint64_t time_ns)
{
	return pipeline_ns_per_tick == 1 ? time_ns : time_ns / pipeline_ns_per_tick;
}

size_t pipeline_memory_bytes(void);
/* memory: pipeline_memory_bytes() bytes aligned to 16; used until the switch ends. */
struct pipeline *pipeline_create(void *memory);

/* The registers in which the program reads the length of each port's queue, PIPELINE_PORTS elements each; NULL: the
 * program declares none. Whoever owns the queues keeps every element equal to its queue's length.
 */
struct pipeline_queue_registers {
	uint32_t *packets;
	uint32_t *bytes;
};
struct pipeline_queue_registers pipeline_queue_registers(struct pipeline *pipeline);

/* Parser, checksum verification, ingress. Reads packet->std.{ingress_port,packet_length,ingress_global_timestamp}. */
void pipeline_ingress(struct pipeline *pipeline, struct packet *packet);

/* Egress control only. Reads packet->std.{egress_port,...,egress_global_timestamp}. */
void pipeline_egress(struct pipeline *pipeline, struct packet *packet);

/* Checksum update, deparse, truncate: packet->frame and frame_bytes become what goes on the wire. */
void pipeline_deparse(struct pipeline *pipeline, struct packet *packet);

/* Makes `copy` a clone of `original` as simple_switch does. For INSTANCE_INGRESS_CLONE copy->frame holds the bytes
 * of the frame as it came in (at least min(frame_bytes, pipeline_max_parse_bytes) of them) and is parsed again;
 * for INSTANCE_EGRESS_CLONE (call before pipeline_deparse) the headers are those at the end of egress and
 * copy->frame holds the payload alone, payload_offset 0. Metadata of field list `fields` is kept, other is zero.
 */
void pipeline_clone(struct pipeline *pipeline, const struct packet *original, struct packet *copy,
		    enum instance_type kind, uint32_t fields);

/* Control words that concern tables, registers and counters (docs/control-protocol.md).
 * Writes a NUL-terminated reply of at most reply_bytes; returns its length, cut replies end in an error line.
 */
size_t pipeline_control(struct pipeline *pipeline, const char *request, char *reply, size_t reply_bytes);

#endif
