/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The switch core. Frames enter with their arrival time and leave with their due time. The core has virtual time only:
 * no clock, no I/O, no allocation (the caller of core_create provides the memory). Times are integer ns, rates integer
 * bits per second.
 *
 * The executor (the real-time process, the network driver in a kernel with virtual time, or softswitch/library.py)
 * passes each arrival to core_receive. It calls core_advance with a time before which no further frame can arrive, and
 * then takes the outputs.
 */
#ifndef SOFTSWITCH_CORE_H
#define SOFTSWITCH_CORE_H

#include "pipeline.h"

#define CORE_NEVER_NS UINT64_MAX

enum {
	CORE_MAX_FRAME_BYTES = 65535,
	CORE_MAX_FLOWS = 1 << 20,
	CORE_SHARED_LINKS = 1024,
	CORE_MAX_PACKETS = 1 << 24,
	CORE_MAX_RATE_ENTRIES = 1 << 20,
};

/* Errors are returned negative, with Linux' numbers. */
enum {
	CORE_EINVAL = 22,
	CORE_ENODEV = 19,
	CORE_EMSGSIZE = 90,
	CORE_ENOBUFS = 105,
};

struct core;

struct core_config {
	uint32_t packets;      /* size of the packet pool (packet_pool.h); an eighth is reserved for clones */
	uint32_t frame_bytes;  /* of the longest frame, with its Ethernet header, without its FCS */
	uint32_t flows;	       /* capacity of the table of flow settings */
	uint32_t rate_entries; /* capacity of the schedules of rates */

	/* Both are NULL if no frame has a body. read_body copies `bytes` bytes of the frame, from `offset` on.
	 * drop_body frees the body of a dropped packet. */
	void (*read_body)(uint8_t *to, const void *body, uint32_t offset, uint32_t bytes);
	void (*drop_body)(void *body);

	/* NULL, or called for each frame as it comes to a port, behind its access link and before the program, and as its
	 * last bit leaves a port's queue, in the order of time. `resident_bytes` of its `bytes` are at `frame`. */
	void (*tap)(uint64_t now_ns, uint16_t port, const uint8_t *frame, uint32_t resident_bytes,
		    uint32_t bytes);
};

/* One output frame. Its bytes belong to the core and are valid until core_release. */
struct core_output {
	uint64_t due_ns;       /* when the frame reaches the other end of its link */
	uint64_t departure_ns; /* when its last bit left the queue */
	const uint8_t *frame;
	uint32_t bytes;
	uint32_t frame_bytes; /* bytes that are at `frame`; the others are in the body, from body_offset on */
	uint32_t body_offset;
	void *body; /* now the caller's; NULL: all bytes are at `frame` */
	uint16_t port;
	bool back_to_back; /* on a link with a rate: its transmission began when the previous one ended */
	void *packet;
};

/* 0 if a value of config is out of range. */
size_t core_memory_bytes(const struct core_config *config);
/* memory: core_memory_bytes(config) bytes, aligned to 64, not necessarily zero. The core has no destructor: the caller
 * frees memory after the last call.
 */
struct core *core_create(void *memory, const struct core_config *config);

/* The core refuses frames from ports that are not attached, and drops and counts frames to them. Returns 0, or -EINVAL
 * if the number is not below PIPELINE_DROP_PORT.
 */
int core_attach_port(struct core *core, uint16_t port);

/* Copies one frame. An arrival before the last completed event is clamped to that event's time, and counted. Returns
 * 0, -EMSGSIZE (empty, or longer than frame_bytes), -ENOBUFS (at most the clones' eighth of the packets is free) or
 * -ENODEV (port not attached); -EMSGSIZE and -ENOBUFS are counted.
 */
int core_receive(struct core *core, uint64_t arrival_ns, uint16_t port, const uint8_t *frame, uint32_t bytes);

/* The number of bytes of a received frame that the core needs in its own memory: at least all bytes that the program's
 * parser reads. If one of the program's checksums covers the payload, the core needs the whole frame.
 */
uint32_t core_head_bytes(void);

/* core_receive for a frame that is not contiguous: `copy` writes its first `bytes` bytes to `to`. A `body` is allowed
 * only for a frame longer than core_head_bytes: the core then copies just core_head_bytes, and keeps the body until the
 * packet is an output or dropped. After an error the body is still the caller's.
 */
typedef void core_copy(uint8_t *to, const void *source, uint32_t bytes);
int core_receive_from(struct core *core, uint64_t arrival_ns, uint16_t port, core_copy *copy,
		      const void *source, uint32_t bytes, void *body);

/* Processes every event up to and including until_ns, in the order of virtual time. At equal times departures come
 * before arrivals: a packet that arrives at t does not see a packet whose last bit leaves at t. Departures of the same
 * ns keep the order in which they were scheduled (scheduler bmv2: the highest queue's first), arrivals of the same ns
 * the order in which they were received.
 */
void core_advance(struct core *core, uint64_t until_ns);
uint64_t core_next_event_ns(const struct core *core); /* CORE_NEVER_NS: no event */

/* A lower bound on the time from the arrival of any future frame to its due time: the smallest propagation delay of
 * all attached ports. Mirror ports are left out, because a postcard carries its times and may leave late. Once a
 * packet other than a clone was queued at a mirror port, that port counts, too.
 */
uint64_t core_lookahead_ns(const struct core *core);

/* Outputs are in the order of due_ns. Outputs of one port with equal delays are in the order of departure. */
uint64_t core_next_output_ns(const struct core *core);
bool core_take_output(struct core *core, uint64_t until_ns, struct core_output *output);
void core_release(struct core *core, const struct core_output *output);

/* Answers one request of docs/control-protocol.md. Writes a NUL-terminated reply of at most reply_bytes (at least 64)
 * and returns its length. The pipeline answers requests for tables, registers and counters.
 */
size_t core_control(struct core *core, const char *request, char *reply, size_t reply_bytes);

#endif
