// SPDX-License-Identifier: MIT
// Sources: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng. Not libpcap: it refuses pcapng files whose interfaces
// differ in link type or snap length, which dumpcap writes whenever it captures on more than one interface.
#include "capture.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	PCAP_HEADER_BYTES = 24,
	PCAP_RECORD_BYTES = 16,
	MODIFIED_EXTRA_BYTES = 8, /* of records of the variant 0xa1b2cd34 */
	BLOCK_HEAD_BYTES = 8,
	BLOCK_LEAST_BYTES = 12,
	SECTION_BLOCK = 0x0a0d0d0a,
	INTERFACE_BLOCK = 1,
	OLD_PACKET_BLOCK = 2,
	SIMPLE_BLOCK = 3,
	STATISTICS_BLOCK = 5,
	PACKET_BLOCK = 6,
	BYTE_ORDER_MAGIC = 0x1a2b3c4d,
	OPTION_END = 0,
	OPTION_RESOLUTION = 9, /* of an interface block */
	OPTION_OFFSET = 14,
	OPTION_RECEIVED = 4, /* of a statistics block */
	OPTION_DROPPED = 5,
	OPTION_DROPPED_BY_SYSTEM = 7,
	MOST_DECIMALS = 19, /* 10^19 fits 64 bits */
	NS_PER_S = 1000000000,
};

static const int64_t MOST_REAL_NS = INT64_C(1) << 62; /* the year 2116 */

static uint16_t u16(const struct capture *capture, const uint8_t *at)
{
	uint16_t value;

	memcpy(&value, at, sizeof(value));
	return capture->is_swapped ? __builtin_bswap16(value) : value;
}

static uint32_t u32(const struct capture *capture, const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return capture->is_swapped ? __builtin_bswap32(value) : value;
}

static uint64_t u64(const struct capture *capture, const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return capture->is_swapped ? __builtin_bswap64(value) : value;
}

__attribute__((format(printf, 2, 3))) static int damaged(struct capture *capture, const char *format, ...)
{
	char reason[DAMAGE_BYTES - 40];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(reason, sizeof(reason), format, arguments);
	va_end(arguments);
	if (capture->input->error)
		snprintf(reason, sizeof(reason), "%s", strerror(-capture->input->error));
	snprintf(capture->damage, sizeof(capture->damage), "at byte %" PRIu64 ": %s", capture->input->taken,
		 reason);
	return 0;
}

static struct capture_interface *add_interface(struct capture *capture, uint16_t link_type,
					       uint32_t snap_bytes)
{
	struct capture_interface *grown;

	if (capture->interfaces == MOST_INTERFACES)
		return NULL;
	if (capture->interfaces == capture->capacity) {
		capture->capacity = capture->capacity ? 2 * capture->capacity : 4;
		grown = realloc(capture->interface, capture->capacity * sizeof(*grown));
		if (!grown)
			return NULL;
		capture->interface = grown;
	}
	grown = &capture->interface[capture->interfaces++];
	*grown = (struct capture_interface){
		.link_type = link_type,
		.snap_bytes = snap_bytes,
		.ticks_per_s = 1000000,
		.dropped = UINT64_MAX,
		.received = UINT64_MAX,
	};
	return grown;
}

/* Fills a frame; its bytes are the next of the stream. Returns 1, or 0 for damage. */
static int give(struct capture *capture, struct frame *frame, uint32_t number, uint64_t ticks,
		const uint8_t *bytes)
{
	struct capture_interface *interface = &capture->interface[number];
	__int128 ns = (__int128)(ticks % interface->ticks_per_s) * NS_PER_S / interface->ticks_per_s;

	ns += ((__int128)(ticks / interface->ticks_per_s) + interface->offset_s) * NS_PER_S;
	if (ns < 0 || ns >= MOST_REAL_NS)
		return damaged(capture, "a time of %" PRId64 " s", (int64_t)(ns / NS_PER_S));
	frame->real_ns = (int64_t)ns;
	frame->interface = number;
	frame->link_type = interface->link_type;
	frame->bytes = bytes;
	interface->frames++;
	return 1;
}

static int next_of_pcap(struct capture *capture, struct frame *frame)
{
	uint32_t head_bytes = PCAP_RECORD_BYTES + capture->record_extra;
	const uint8_t *at = input_see(capture->input, head_bytes);
	uint64_t ticks;
	uint32_t part;

	if (!at)
		return input_ended(capture->input) && !capture->input->error
			       ? 0
			       : damaged(capture, "cut off in a packet");
	part = u32(capture, at + 4);
	ticks = u32(capture, at) * capture->interface->ticks_per_s + part;
	frame->captured_bytes = u32(capture, at + 8);
	frame->frame_bytes = u32(capture, at + 12);
	if (frame->captured_bytes > MOST_FRAME_BYTES)
		return damaged(capture, "a packet of %" PRIu32 " bytes", frame->captured_bytes);
	at = input_see(capture->input, head_bytes + frame->captured_bytes);
	if (!at)
		return damaged(capture, "cut off in a packet");
	if (!give(capture, frame, 0, ticks, at + head_bytes))
		return 0;
	input_take(capture->input, head_bytes + frame->captured_bytes);
	return 1;
}

/* Goes through the options of a block; calls back for each with its value. */
static void
options(struct capture *capture, const uint8_t *at, const uint8_t *end, struct capture_interface *interface,
	void (*each)(struct capture *, struct capture_interface *, uint16_t, uint16_t, const uint8_t *))
{
	uint16_t code, bytes;

	while (end - at >= 4) {
		code = u16(capture, at);
		bytes = u16(capture, at + 2);
		at += 4;
		if (code == OPTION_END || end - at < bytes)
			return;
		each(capture, interface, code, bytes, at);
		if (end - at < (bytes + 3) / 4 * 4)
			return;
		at += (bytes + 3) / 4 * 4;
	}
}

static void interface_option(struct capture *capture, struct capture_interface *interface, uint16_t code,
			     uint16_t bytes, const uint8_t *value)
{
	uint64_t ticks = 1;

	if (code == OPTION_OFFSET && bytes == 8)
		interface->offset_s = (int64_t)u64(capture, value);
	if (code != OPTION_RESOLUTION || bytes < 1)
		return;
	if (*value & 0x80)
		ticks = (*value & 0x7f) < 64 ? UINT64_C(1) << (*value & 0x7f) : 0;
	else
		for (uint8_t power = 0; power < *value; power++)
			ticks = power < MOST_DECIMALS ? ticks * 10 : 0;
	interface->ticks_per_s = ticks; /* 0: too fine for 64 bits */
}

static void statistics_option(struct capture *capture, struct capture_interface *interface, uint16_t code,
			      uint16_t bytes, const uint8_t *value)
{
	if (bytes != 8)
		return;
	if (code == OPTION_RECEIVED)
		interface->received = u64(capture, value);
	if (code == OPTION_DROPPED || code == OPTION_DROPPED_BY_SYSTEM)
		interface->dropped =
			(interface->dropped == UINT64_MAX ? 0 : interface->dropped) + u64(capture, value);
}

/* An interface of the section by its number in a block; NULL: there is none. */
static struct capture_interface *interface_of(struct capture *capture, uint32_t number)
{
	if (number >= capture->interfaces - capture->section_interface)
		return NULL;
	return &capture->interface[capture->section_interface + number];
}

/* A block with a packet, an interface, or statistics. Returns 1 with a frame, 0 after damage, -EAGAIN without a frame. */
static int read_block(struct capture *capture, struct frame *frame, uint32_t type, uint32_t bytes)
{
	uint32_t fixed = type == INTERFACE_BLOCK ? 8 : type == STATISTICS_BLOCK ? 12 : 20, number = 0;
	struct capture_interface *interface;
	const uint8_t *block, *body, *end;

	if (bytes < BLOCK_LEAST_BYTES + fixed)
		return damaged(capture, "a block of type %" PRIu32 " is too short", type);
	block = input_see(capture->input, bytes);
	if (!block)
		return damaged(capture,
			       bytes > INPUT_MOST_BYTES ? "a block of %" PRIu32 " bytes"
							: "cut off in a block",
			       bytes);
	body = block + BLOCK_HEAD_BYTES;
	end = block + bytes - 4;
	if (u32(capture, end) != bytes)
		return damaged(capture, "a block whose two lengths differ");
	if (type == INTERFACE_BLOCK) {
		interface = add_interface(capture, u16(capture, body), u32(capture, body + 4));
		if (!interface)
			return damaged(capture, "more than %u interfaces", MOST_INTERFACES);
		options(capture, body + 8, end, interface, interface_option);
		if (!interface->ticks_per_s)
			return damaged(capture,
				       "an interface whose resolution of time is finer than 10^-19 s");
		input_take(capture->input, bytes);
		return -EAGAIN;
	}
	number = type == OLD_PACKET_BLOCK ? u16(capture, body) : u32(capture, body);
	interface = interface_of(capture, number);
	if (!interface)
		return damaged(capture, "interface %" PRIu32 " is not described", number);
	if (type == STATISTICS_BLOCK) {
		interface->dropped = UINT64_MAX; /* the last block counts */
		options(capture, body + 12, end, interface, statistics_option);
		input_take(capture->input, bytes);
		return -EAGAIN;
	}
	frame->captured_bytes = u32(capture, body + 12);
	frame->frame_bytes = u32(capture, body + 16);
	if (frame->captured_bytes > MOST_FRAME_BYTES || frame->captured_bytes > (size_t)(end - body) - 20)
		return damaged(capture, "a packet of %" PRIu32 " bytes in a block of %" PRIu32,
			       frame->captured_bytes, bytes);
	if (!give(capture, frame, (uint32_t)(interface - capture->interface),
		  (uint64_t)u32(capture, body + 4) << 32 | u32(capture, body + 8), body + 20))
		return 0;
	input_take(capture->input, bytes);
	return 1;
}

/* The section block tells the byte order of its section, itself included. */
static bool section(struct capture *capture, const uint8_t *at)
{
	uint32_t magic;

	memcpy(&magic, at + BLOCK_HEAD_BYTES, sizeof(magic));
	capture->is_swapped = magic == __builtin_bswap32(BYTE_ORDER_MAGIC);
	capture->section_interface = capture->interfaces;
	return capture->is_swapped || magic == BYTE_ORDER_MAGIC;
}

static int next_of_pcapng(struct capture *capture, struct frame *frame)
{
	const uint8_t *at;
	uint32_t type, bytes;
	int result;

	for (;;) {
		at = input_see(capture->input, BLOCK_LEAST_BYTES);
		if (!at)
			return input_ended(capture->input) && !capture->input->error
				       ? 0
				       : damaged(capture, "cut off in a block");
		memcpy(&type, at, sizeof(type)); /* a section's type reads the same in both byte orders */
		if (type == SECTION_BLOCK && !section(capture, at))
			return damaged(capture, "a section of unknown byte order");
		type = u32(capture, at);
		bytes = u32(capture, at + 4);
		if (bytes < BLOCK_LEAST_BYTES || bytes % 4)
			return damaged(capture, "a block of %" PRIu32 " bytes", bytes);
		result = -EAGAIN;
		if (type == INTERFACE_BLOCK || type == PACKET_BLOCK || type == OLD_PACKET_BLOCK ||
		    type == STATISTICS_BLOCK)
			result = read_block(capture, frame, type, bytes);
		else if (!input_take(capture->input, bytes))
			return damaged(capture, "cut off in a block");
		capture->untimed += type == SIMPLE_BLOCK;
		if (result != -EAGAIN)
			return result;
	}
}

int capture_next(struct capture *capture, struct frame *frame)
{
	if (*capture->damage)
		return 0;
	return capture->is_pcapng ? next_of_pcapng(capture, frame) : next_of_pcap(capture, frame);
}

int capture_open(struct capture *capture, struct input *input)
{
	static const struct {
		uint32_t magic;
		uint32_t ticks_per_s, extra;
	} kinds[] = {{0xa1b2c3d4, 1000000, 0},
		     {0xa1b23c4d, NS_PER_S, 0},
		     {0xa1b2cd34, 1000000, MODIFIED_EXTRA_BYTES}};
	struct capture_interface *interface;
	const uint8_t *at;
	uint32_t magic;

	*capture = (struct capture){.input = input};
	at = input_see(input, BLOCK_LEAST_BYTES);
	if (!at) {
		damaged(capture, "it is too short for a capture");
		return -EINVAL;
	}
	memcpy(&magic, at, sizeof(magic));
	capture->is_pcapng = magic == SECTION_BLOCK;
	if (capture->is_pcapng)
		return 0;
	for (size_t kind = 0; kind < sizeof(kinds) / sizeof(*kinds); kind++) {
		capture->is_swapped = magic == __builtin_bswap32(kinds[kind].magic);
		if (magic != kinds[kind].magic && !capture->is_swapped)
			continue;
		at = input_see(input, PCAP_HEADER_BYTES);
		if (!at)
			break;
		capture->record_extra = kinds[kind].extra;
		interface = add_interface(capture, (uint16_t)u32(capture, at + 20), u32(capture, at + 16));
		if (!interface)
			break;
		interface->ticks_per_s = kinds[kind].ticks_per_s;
		input_take(input, PCAP_HEADER_BYTES);
		return 0;
	}
	damaged(capture, "neither pcap nor pcapng begins so");
	return -EINVAL;
}

void capture_close(struct capture *capture)
{
	free(capture->interface);
}
