// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The headers of all frames at two ports, the sender's and that of the bottleneck's queue, as captures (pcap, ns of
 * CLOCK_REALTIME) in the directory in which the kernel runs: what two taps before and behind the queue would see, without
 * their errors. User-Mode Linux writes the files of the host itself: no process of the machine runs, and no virtual time
 * passes, so a run is the same with and without taps.
 */
#include <linux/ktime.h>
#include <linux/vmalloc.h>
#include <os.h>

#include "../runtime/pcap.h"
#include "switch.h"

enum {
	BUFFER_BYTES = 1 << 18,
};

static struct tap {
	const char *path;
	int port;	  /* -1: no tap */
	int file;	  /* -errno: frames are lost */
	u32 used, frames; /* in the buffer */
	u8 *buffer;
} all[2] = {{"before.pcap", -1}, {"after.pcap", -1}};
static struct executor *counters;

/* After an error the file has no whole frame at its end, so nothing more is written. */
static void flush(struct tap *tap)
{
	int done = 0, written = 0;

	while (tap->file >= 0 && done < tap->used) {
		written = os_write_file(tap->file, tap->buffer + done, tap->used - done);
		if (written > 0)
			done += written;
		else if (written != -EINTR)
			break;
	}
	if (done < tap->used && tap->file >= 0) {
		pr_err("bufferscope_switch: writing %s: %pe\n", tap->path, ERR_PTR(written));
		os_close_file(tap->file);
		tap->file = -EIO;
	}
	*(tap->file >= 0 ? &counters->taps_frames : &counters->taps_lost) += tap->frames;
	tap->used = tap->frames = 0;
}

static void put(struct tap *tap, const void *bytes, u32 length)
{
	memcpy(tap->buffer + tap->used, bytes, length);
	tap->used += length;
}

void bsw_taps_record(u64 now_ns, u16 port, const u8 *frame, u32 resident_bytes, u32 bytes)
{
	u32 captured = min3(resident_bytes, bytes, (u32)PCAP_SNAP_BYTES), nanoseconds;
	u64 seconds = div_u64_rem(now_ns + ktime_to_ns(ktime_mono_to_real(0)), NSEC_PER_SEC, &nanoseconds);
	const struct pcap_frame head = {seconds, nanoseconds, captured, bytes};

	for (struct tap *tap = all; tap < all + ARRAY_SIZE(all); tap++) {
		if (tap->port != port)
			continue;
		if (tap->used + sizeof(head) + captured > BUFFER_BYTES)
			flush(tap);
		put(tap, &head, sizeof(head));
		put(tap, frame, captured);
		tap->frames++;
	}
}

void bsw_taps_flush(void)
{
	for (struct tap *tap = all; tap < all + ARRAY_SIZE(all); tap++)
		if (tap->port >= 0)
			flush(tap);
}

int bsw_taps_create(struct executor *executor, const u32 ports[2])
{

	counters = executor;
	for (int side = 0; side < ARRAY_SIZE(all); side++) {
		struct tap *tap = &all[side];

		tap->file = os_open_file(tap->path, of_create(of_trunc(of_write(OPENFLAGS()))), 0644);
		tap->buffer = tap->file < 0 ? NULL : vmalloc(BUFFER_BYTES);
		if (!tap->buffer) {
			pr_err("bufferscope_switch: %s: %pe: no switch\n", tap->path,
			       ERR_PTR(tap->file < 0 ? tap->file : -ENOMEM));
			return tap->file < 0 ? tap->file : -ENOMEM;
		}
		put(tap, &pcap_header, sizeof(pcap_header));
		tap->port = ports[side];
	}
	return 0;
}
