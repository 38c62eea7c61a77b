/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The switch core: frames in with their arrival time, frames out with the time they are due. It keeps virtual
 * time and nothing else: no clock, no I/O, no allocation after core_create, integer ns and bits per second.
 *
 * Whoever drives it (rings, a capture, a kernel in virtual time) calls core_receive for what has arrived,
 * core_advance up to a time before which nothing more will arrive, and takes the outputs.
 */
#ifndef SOFTSWITCH_CORE_H
#define SOFTSWITCH_CORE_H

#include "pipeline.h"

#define CORE_NEVER_NS UINT64_MAX

enum {
	CORE_ETHERNET_OVERHEAD_BYTES = 24, /* preamble 7, start 1, FCS 4, gap 12 */
	CORE_ETHERNET_MIN_BYTES = 60,	   /* shorter frames are padded on the wire (FCS not counted) */
	CORE_MAX_FRAME_BYTES = 65535,
	CORE_MAX_FLOWS = 1 << 20,
	CORE_MAX_PACKETS = 1 << 24,
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
	uint32_t
		packets; /* in the switch at once: queued, on links, not yet taken; an eighth is for clones */
	uint32_t frame_bytes; /* longest frame, Ethernet header included, FCS not */
	uint32_t flows;	      /* flows with settings of their own */
};

/* One frame that is due. Its bytes belong to the core and are valid until core_release. */
struct core_output {
	uint64_t due_ns;       /* when it reaches the other end of its link */
	uint64_t departure_ns; /* when its last bit left the queue */
	const uint8_t *frame;
	uint32_t bytes;
	uint16_t port;
	bool back_to_back; /* its transmission began when the previous one on a link with a rate ended */
	void *packet;
};

/* 0 if a value of config is out of range. */
size_t core_memory_bytes(const struct core_config *config);
/* memory: core_memory_bytes(config) bytes, aligned to 64, used until the core is forgotten; need not be zero.
 */
struct core *core_create(void *memory, const struct core_config *config);

/* Only frames from and to attached ports exist; a frame sent to another is dropped and counted. -EINVAL: no
 * such port. */
int core_attach_port(struct core *core, uint16_t port);

/* Takes a copy of one frame. A frame older than the last event done is clamped to that event's time, and
 * counted. 0, or (counted too) -EMSGSIZE: longer than frame_bytes or empty, -ENOBUFS: no packet free,
 * -ENODEV: port not attached.
 */
int core_receive(struct core *core, uint64_t arrival_ns, uint16_t port, const uint8_t *frame, uint32_t bytes);

/* The same for a frame that does not lie in one piece: `copy` writes its `bytes` bytes to `to`. */
typedef void core_copy(uint8_t *to, const void *source, uint32_t bytes);
int core_receive_from(struct core *core, uint64_t arrival_ns, uint16_t port, core_copy *copy,
		      const void *source, uint32_t bytes);

/* Does every event up to and including until_ns, in the order of virtual time. At one ns: first departures (a
 * packet whose last bit leaves at t is gone for one that arrives at t), then arrivals; each kind in the order
 * in which the events were made.
 */
void core_advance(struct core *core, uint64_t until_ns);
uint64_t core_next_event_ns(const struct core *core); /* CORE_NEVER_NS: none */

/* No frame that is yet to arrive can be due sooner than this after its arrival: the smallest propagation delay of all
 * attached ports. A port that a mirror session sends to does not count, for the times of a copy are written in it,
 * until a packet that is no clone is queued there: from then on the port carries data. The program alone knows where
 * it forwards, so the first such packet is how the core learns it.
 */
uint64_t core_lookahead_ns(const struct core *core);

/* Outputs in the order of due_ns, those of one port and one flow delay in the order of departure. */
uint64_t core_next_output_ns(const struct core *core);
bool core_take_output(struct core *core, uint64_t until_ns, struct core_output *output);
void core_release(struct core *core, const struct core_output *output);

/* One request of docs/control-protocol.md. Writes a NUL-terminated reply of at most reply_bytes (at least 64)
 * and returns its length. What concerns tables, registers and counters goes to the pipeline.
 */
size_t core_control(struct core *core, const char *request, char *reply, size_t reply_bytes);

#endif
