/* SPDX-License-Identifier: MIT
 * What the files of the real-time shell share. One thread; every struct is owned by main.c and handed down.
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
#include "../runtime/executor.h"

enum {
	SHELL_MAX_CLIENTS = 16,
	SHELL_BATCH = 64, /* frames a system call */
	SHELL_VLAN_BYTES = 4,
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
	uint32_t packets;     /* 0: from frame_bytes */
	uint32_t frame_bytes; /* 0: from the MTUs */
	uint32_t flows;
	uint32_t ring_mib;
	uint64_t horizon_ns;
	bool spin;
	bool watch; /* the clock, shortly before an output is due: sleeping alone wakes up late */
	bool allow_offloads;
	bool boost; /* nice -20 and a short slice */
};

/* 0, 1 if all is said already (--help), or -EINVAL with a line on stderr. */
int options_parse(struct options *options, int argc, char **argv);

/* rings.c */
struct ring {
	int fd;
	uint8_t *map;
	size_t map_bytes;
	uint32_t slot_bytes;
	struct executor_port *counters; /* rx_* */
	uint32_t slots;
	uint32_t slot; /* the next one to read */
	uint32_t mtu_bytes;
	int ifindex;
	bool has_head; /* a frame is waiting, it arrived at head_ns */
	uint64_t head_ns;
};

struct ring_frame {
	const uint8_t *bytes;
	uint32_t length; /* more than what is there if truncated */
	uint64_t arrival_ns;
};

int ring_open(struct ring *ring, struct executor_port *counters, const char *interface, uint32_t frame_bytes,
	      uint32_t ring_mib);
void ring_close(struct ring *ring);
int ring_interface_mtu(const char *interface);	/* or negative errno, with a line on stderr */
int ring_check_offloads(const char *interface); /* 0, -EINVAL with a line on stderr */
bool ring_peek(struct ring *ring, const struct clock_offset *clock); /* fills head_ns */
void ring_take(struct ring *ring, struct ring_frame *frame); /* after ring_peek; valid until ring_give_back */
void ring_give_back(struct ring *ring);
void ring_read_drops(struct ring *ring);
void ring_clear_error(struct ring *ring); /* an interface that went down; else every poll ends at once */

/* transmit.c */
struct held_output {
	struct core_output output;
	struct held_output *next;
};

/* The frames of all ports that wait behind a refused one; they never get more than the pool has packets. */
struct backlog {
	struct held_output *nodes; /* as many as packets */
	struct held_output *free;
	uint32_t packets;
	uint32_t held;
};

struct transmit {
	int fd;
	uint32_t count;
	uint32_t sent;		       /* of count */
	uint32_t tries;		       /* of the frame at `sent` */
	uint64_t retry_ns;	       /* that frame was refused, and is tried again then; 0: it was not */
	struct held_output *held_head; /* frames behind the batch, in order */
	struct held_output *held_tail;
	uint32_t held;
	struct executor_port *counters; /* tx_*, lateness */
	struct core_output outputs[SHELL_BATCH];
	struct iovec vectors[SHELL_BATCH];
	struct mmsghdr *messages;
};

int transmit_start(struct transmit *transmit, struct executor_port *counters,
		   int fd); /* sends to fd; 0 or -ENOMEM */
int transmit_open(struct transmit *transmit, struct executor_port *counters, const char *interface);
void transmit_close(struct transmit *transmit);
void transmit_add(struct transmit *transmit, struct backlog *backlog, const struct core_output *output);
void transmit_flush(struct transmit *transmit, struct backlog *backlog, struct core *core);

/* What the control socket and the loop work on. */
struct port_io {
	uint16_t number;
	char interface[IFNAMSIZ];
	struct ring ring;
	struct transmit transmit;
};

struct shell {
	struct executor executor;
	struct core *core;
	struct clock_offset clock; /* of the kernel's stamps */
	struct port_io *ports;	   /* as many as the executor's, in the same order */
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
void outputs_send_due(struct shell *shell, uint64_t now_ns); /* every frame that is due and not refused */
uint64_t outputs_retry_ns(const struct shell *shell);	     /* CORE_NEVER_NS: no frame waits */
bool outputs_are_congested(const struct shell *shell);	     /* no more frames may be read for now */

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
			   struct pollfd *list); /* 1 + SHELL_MAX_CLIENTS */
void control_serve(struct control_socket *control, struct shell *shell, const struct pollfd *list,
		   uint32_t count);
void control_measure(struct executor *executor); /* of a struct shell */

/* loop.c; signal_fd: SIGINT or SIGTERM end the loop */
void loop_run(struct shell *shell, struct control_socket *control, int signal_fd);

/* privileges.c */
int privileges_check(void);	      /* 0, or -EPERM with a line on stderr */
void privileges_schedule(bool boost); /* failures are told, and not fatal */
void privileges_lock_memory(void);
int privileges_drop(const char *user);

#endif
