/* SPDX-License-Identifier: MIT
 * Types and functions that the files of the real-time shell share. The shell has one thread, and another one that only
 * writes captures (taps.c). main.c owns every other struct.
 */
#ifndef SOFTSWITCH_SHELL_H
#define SOFTSWITCH_SHELL_H

#include <net/if.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "../../lib/clock_ns.h"
#include "../../lib/clock_offset.h"
#include "../../lib/frames.h"
#include "../runtime/executor.h"

enum {
	SHELL_MAX_CLIENTS = 16,
	SHELL_BATCH = 64, /* frames per system call */
	OPTIONS_MAX_TAPS = 2,
};

/* options.c */
struct options {
	const char *control_path;
	const char *drop_user;
	uint32_t port_count;
	struct {
		uint16_t number;
		char interface[IFNAMSIZ];
	} ports[EXECUTOR_MAX_PORTS];
	uint32_t tap_count;
	struct {
		uint16_t number;
		const char *path;
	} taps[OPTIONS_MAX_TAPS];
	uint32_t packets;     /* 0: derived from frame_bytes */
	uint32_t frame_bytes; /* 0: derived from the MTUs */
	uint32_t flows;
	uint32_t rate_entries;
	uint32_t ring_mib;
	uint64_t horizon_ns;
	bool spin;
	bool watch; /* poll the clock shortly before an output is due, because a sleep ends late */
	bool allow_offloads;
	bool boost; /* nice -20 and a short slice */
};

/* Returns 0, 1 after --help, or -EINVAL after a line on stderr. */
int options_parse(struct options *options, int argc, char **argv);

/* rings.c */
struct ring {
	int fd;
	uint8_t *map;
	size_t map_bytes;
	uint32_t slot_bytes;
	struct executor_port *counters; /* rx_* */
	uint32_t slots;
	uint32_t slot; /* the next slot to read */
	int ifindex;
	bool has_head; /* the next slot has a frame, which arrived at head_ns */
	uint64_t head_ns;
};

struct ring_frame {
	const uint8_t *bytes;
	uint32_t length; /* of the whole frame; `bytes` has fewer if the slot truncated the frame */
	uint64_t arrival_ns;
};

int ring_open(struct ring *ring, struct executor_port *counters, const char *interface, uint32_t frame_bytes,
	      uint32_t ring_mib);
void ring_close(struct ring *ring);
int ring_interface_mtu(const char *interface);	/* or -errno after a line on stderr */
int ring_check_offloads(const char *interface); /* 0, or -EINVAL after a line on stderr */
bool ring_peek(struct ring *ring, const struct clock_offset *clock); /* sets head_ns */
void ring_take(struct ring *ring, struct ring_frame *frame); /* after ring_peek; valid until ring_give_back */
void ring_give_back(struct ring *ring);
void ring_read_drops(struct ring *ring);
/* Clears the error that the socket has after its interface went down. An error makes every poll return at once. */
void ring_clear_error(struct ring *ring);

/* transmit.c */
struct held_output {
	struct core_output output;
	struct held_output *next;
};

/* Frames of all ports that wait behind a refused frame. At most as many as the pool has packets. */
struct backlog {
	struct held_output *nodes; /* one for each packet */
	struct held_output *free;
	uint32_t packets;
	uint32_t held;
};

struct transmit {
	int fd;
	uint32_t count;
	uint32_t sent;	   /* of count */
	uint32_t tries;	   /* refusals since a frame was last sent */
	uint64_t retry_ns; /* when to send the refused frame at `sent` again; 0: none is refused */
	struct held_output *held_head; /* frames after the batch, in order */
	struct held_output *held_tail;
	uint32_t held;
	struct executor_port *counters; /* tx_*, lateness */
	struct core_output outputs[SHELL_BATCH];
	struct iovec vectors[SHELL_BATCH];
	struct mmsghdr *messages;
};

int transmit_start(struct transmit *transmit, struct executor_port *counters,
		   int fd); /* sends on fd; 0 or -ENOMEM */
int transmit_open(struct transmit *transmit, struct executor_port *counters, const char *interface);
void transmit_close(struct transmit *transmit);
void transmit_add(struct transmit *transmit, struct backlog *backlog, const struct core_output *output);
void transmit_flush(struct transmit *transmit, struct backlog *backlog, struct core *core);

/* A port of the shell. */
struct port_io {
	uint16_t number;
	char interface[IFNAMSIZ];
	struct ring ring;
	struct transmit transmit;
};

struct shell {
	struct executor executor;
	struct core *core;
	struct clock_offset clock; /* converts the kernel's stamps */
	struct port_io *ports;	   /* in the order of the executor's ports */
	struct port_io *by_number[PIPELINE_PORTS];
	uint32_t port_count;
	struct backlog backlog;
	uint64_t horizon_ns;
	bool spin;
	bool watch;
};

/* outputs.c */
int outputs_open(struct backlog *backlog, uint32_t packets); /* 0 or -ENOMEM */
void outputs_close(struct backlog *backlog);
void outputs_send_due(struct shell *shell,
		      uint64_t now_ns); /* hands every due frame to the kernel, except behind a refused one */
uint64_t outputs_retry_ns(const struct shell *shell);  /* when to send waiting frames, or CORE_NEVER_NS */
bool outputs_are_congested(const struct shell *shell); /* read no more frames for now */

/* control_socket.c */
struct control_socket {
	int fd;
	struct sockaddr_un address;
	bool bound;
	int clients[SHELL_MAX_CLIENTS]; /* -1: free */
	char request[EXECUTOR_REQUEST_BYTES + 2];
	char reply[EXECUTOR_REPLY_BYTES];
};

int control_open(struct control_socket *control, const char *path);
void control_close(struct control_socket *control);
uint32_t control_poll_list(const struct control_socket *control,
			   struct pollfd *list); /* list: room for 1 + SHELL_MAX_CLIENTS */
void control_serve(struct control_socket *control, struct shell *shell, const struct pollfd *list,
		   uint32_t count);
void control_measure(struct executor *executor); /* executor: of a struct shell */

/* taps.c; 0, or -errno after a line on stderr. Before privileges_lock_memory and privileges_schedule: the thread needs a
 * stack, and no boost. */
int taps_open(const struct options *options, const struct clock_offset *clock);
void taps_record(uint64_t now_ns, uint16_t port, const uint8_t *frame, uint32_t resident_bytes,
		 uint32_t bytes);
void taps_measure(struct executor *executor); /* after it, files and counters have all frames */
void taps_close(void);

/* loop.c; signal_fd: SIGINT or SIGTERM end the loop */
void loop_run(struct shell *shell, struct control_socket *control, int signal_fd);

/* privileges.c */
int privileges_check(void);	      /* 0, or -EPERM after a line on stderr */
void privileges_schedule(bool boost); /* a failure is reported and not fatal */
void privileges_lock_memory(void);
int privileges_drop(const char *user);

#endif
