/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * /dev/bufferscope-traffic: the kernel sends on sockets, or receives and discards, for the programs that opened the
 * sockets. A segment takes no system call and no wake-up of a program. A program and the kernel share this file.
 *
 * The device reads and writes as a program does without it: writes of PUMP_WRITE_BYTES while the socket is writable,
 * one read of all data that has arrived. Where computation takes no time, both give the same segments.
 */
#ifndef TRAFFIC_PUMP_H
#define TRAFFIC_PUMP_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define PUMP_DEVICE "/dev/bufferscope-traffic"

enum {
	/* SO_MARK of a socket that sends only zeros, from its first byte on: a NIC need not read the payload for the
	 * checksum. A program must not write to such a socket.
	 */
	PUMP_ZEROS_MARK = 0x62660001,
	PUMP_WRITE_BYTES = 128 << 10,
	PUMP_READ_BYTES = 256 << 20, /* no socket buffer is larger */
};

/* A connected TCP socket. The device sends `bytes` and a FIN, then releases the socket. With `bytes` 0 the device
 * sends until PUMP_STOP. `window_segments` bounds the congestion window, whatever the congestion control; 0: no bound.
 */
struct pump_send {
	__s32 fd;
	__u32 window_segments;
	__u64 bytes;
};

struct pump_stop {
	__s32 fd;
	__s32 error;	     /* returned: of the last write, 0 or -errno */
	__u64 written_bytes; /* returned */
};

/* A connected TCP socket. The device receives on the socket, and holds it open, until PUMP_STOP. Counts name the socket
 * by `id`. PUMP_STOP discards counts that were not read.
 */
struct pump_discard {
	__s32 fd;
	__u32 id;
};

/* Bytes that a socket received since the last query. */
struct pump_count {
	__u32 id;
	__u32 reads;
	__u64 bytes;
};

/* Fills up to `capacity` counts; `count` is the number filled. The device polls as readable if there is a count. */
struct pump_counts {
	__u64 counts; /* address of struct pump_count[capacity] */
	__u32 capacity;
	__u32 count;
};

#define PUMP_SEND    _IOW('b', 1, struct pump_send)
#define PUMP_STOP    _IOWR('b', 2, struct pump_stop)
#define PUMP_DISCARD _IOW('b', 3, struct pump_discard)
#define PUMP_COUNTS  _IOWR('b', 4, struct pump_counts)

#endif
