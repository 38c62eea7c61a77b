/* SPDX-License-Identifier: MIT
 * The frames of a capture: pcap (us or ns, either byte order) or pcapng (any number of sections and interfaces, each
 * with its own link type, resolution of time, and snap length).
 */
#ifndef CAPTURES_CAPTURE_H
#define CAPTURES_CAPTURE_H

#include "input.h"

enum {
	MOST_FRAME_BYTES = 1 << 20, /* GRO with BIG TCP makes frames of up to 512 KiB */
	MOST_INTERFACES = 1 << 16,
	DAMAGE_BYTES = 160,
};

struct capture_interface {
	uint16_t link_type; /* LINKTYPE_* */
	uint32_t snap_bytes;
	int64_t offset_s;
	uint64_t ticks_per_s;
	uint64_t dropped, received; /* by the capture's own counters; UINT64_MAX: it does not say */
	uint64_t frames;
};

struct capture {
	struct input *input;
	char damage[DAMAGE_BYTES]; /* why the rest cannot be read; empty: it was read to its end */
	bool is_pcapng, is_swapped;
	uint32_t record_extra;	    /* bytes of a pcap record behind its header, before the frame */
	uint32_t section_interface; /* number of the section's first interface */
	uint32_t interfaces, capacity;
	struct capture_interface *interface;
	uint64_t untimed; /* frames left out: pcapng's simple packet block has no time */
};

struct frame {
	int64_t real_ns;
	const uint8_t *bytes; /* valid until the next call */
	uint32_t captured_bytes, frame_bytes;
	uint32_t interface;
	uint16_t link_type;
};

/* Reads the file's header. Returns 0, or -EINVAL with the reason in `damage`: the stream is not a capture. */
int capture_open(struct capture *capture, struct input *input);

/* The next frame. Returns 1; 0 at the end, or before damage. */
int capture_next(struct capture *capture, struct frame *frame);

void capture_close(struct capture *capture);

#endif
