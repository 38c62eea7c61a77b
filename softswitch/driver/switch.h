/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Types and functions that the files of the driver share: one switch, its ports, its timer.
 *
 * `lock` protects all fields after it. It is taken with bottom halves off: they are off in ndo_start_xmit and in a soft
 * hrtimer, and a control request disables them. No hard interrupt takes the lock. It is not held while a frame is
 * passed to the stack, because TCP may transmit from within that call.
 */
#ifndef BUFFERSCOPE_SWITCH_H
#define BUFFERSCOPE_SWITCH_H

#include <linux/hrtimer.h>
#include <linux/netdevice.h>
#include <linux/spinlock.h>

#include "../runtime/executor.h"

/* The host's end of a port, in the private part of its network device. Sent (tx) means sent by the host. */
struct bsw_port {
	struct bsw_switch *owner;
	struct executor_port *counters;
	u64 tx_packets;
	u64 tx_bytes;
	u64 tx_dropped; /* refused by the core: too long, or no free packet */
	u64 rx_packets;
	u64 rx_bytes;
	u64 rx_dropped; /* the device was down or went down, or memory was out */
	u32 rx_usecs;	/* interrupt moderation; 0: none, and frames bypass the next three fields */
	struct sk_buff_head waiting;
	struct hrtimer moderation; /* from the first waiting frame to the interrupt */
	struct napi_struct napi;
};

struct bsw_switch {
	spinlock_t lock;
	struct executor executor;
	struct hrtimer timer;
	u64 armed_ns;	 /* when the timer expires; CORE_NEVER_NS: not set */
	bool delivering; /* the timer's function is running; it sets the timer at its end */
	bool in_qdisc;	 /* the core runs the qdisc of a port (queue_device.c) */
	void *memory;
	unsigned int *truesizes;		    /* by frame length in bytes; 0: not known yet */
	struct net_device *devices[PIPELINE_PORTS]; /* by the port's number */
	struct executor_port *queue_errors;	    /* counts frames that no memory is left for */
};

/* ports.c; 0, or -errno after a console line */
int bsw_ports_create(struct bsw_switch *owner, u32 frame_bytes);
void bsw_ports_destroy(struct bsw_switch *owner);

/* schedule.c; call bsw_schedule with the lock held */
void bsw_schedule_init(struct bsw_switch *owner);
void bsw_schedule(struct bsw_switch *owner, u64 now_ns); /* processes events up to now_ns, sets the timer */
void bsw_arm(struct bsw_switch *owner);
/* The output's frame as an skb. NULL: memory is out, and output has no body. */
struct sk_buff *bsw_make_skb(struct bsw_switch *owner, struct net_device *device,
			     const struct core_output *output);

/* queue_device.c; 0, or -errno after a console line. From now on the queue of port `number` is the qdisc of bswq. */
int bsw_queue_create(struct bsw_switch *owner, u32 number);

/* taps.c; 0, or -errno after a console line. `ports`: of the sender and of the queue. */
int bsw_taps_create(struct executor *executor, const u32 ports[2]);
void bsw_taps_record(u64 now_ns, u16 port, const u8 *frame, u32 resident_bytes, u32 bytes);
void bsw_taps_flush(void);

/* moderation.c; bsw_moderate takes ownership of the skb */
void bsw_moderation_create(struct bsw_port *port, struct net_device *device);
void bsw_moderation_open(struct bsw_port *port);
void bsw_moderation_stop(struct bsw_port *port);
void bsw_moderate(struct bsw_port *port, struct sk_buff *skb);
int bsw_get_coalesce(struct net_device *device, struct ethtool_coalesce *coalesce,
		     struct kernel_ethtool_coalesce *kernel_coalesce, struct netlink_ext_ack *extack);
int bsw_set_coalesce(struct net_device *device, struct ethtool_coalesce *coalesce,
		     struct kernel_ethtool_coalesce *kernel_coalesce, struct netlink_ext_ack *extack);

/* control_device.c; 0, or -errno after a console line. If owner has no core, opening the device gives -ENODEV. */
int bsw_control_create(struct bsw_switch *owner);

#endif
