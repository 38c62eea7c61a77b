/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * What the files of the driver share: one switch, its ports, its timer.
 *
 * Everything below `lock` changes only while it is held. It is taken where bottom halves are off: in ndo_start_xmit,
 * in a soft hrtimer, in a control request (which switches them off). Never in a hard interrupt, so that is enough.
 * It is never held while a frame is handed to the stack, because TCP answers from within by transmitting.
 */
#ifndef BUFFERSCOPE_SWITCH_H
#define BUFFERSCOPE_SWITCH_H

#include <linux/hrtimer.h>
#include <linux/netdevice.h>
#include <linux/spinlock.h>

#include "../runtime/executor.h"

/* A port's far end, in the private part of its network device. Its counters are the host's view. */
struct bsw_port {
	struct bsw_switch *owner;
	struct executor_port *counters;
	u64 tx_packets;
	u64 tx_bytes;
	u64 tx_dropped; /* refused by the core: too long, or no packet free */
	u64 rx_packets;
	u64 rx_bytes;
	u64 rx_dropped; /* the device was down, or memory was short */
};

struct bsw_switch {
	spinlock_t lock;
	struct executor executor;
	struct hrtimer timer;
	u64 armed_ns;	 /* when the timer expires; CORE_NEVER_NS: it does not */
	bool delivering; /* the timer's function is at work, and sets the timer when it is done */
	void *memory;
	struct net_device *devices[EXECUTOR_MAX_PORTS]; /* port number - 1 */
};

/* ports.c: 0 or negative errno, told */
int bsw_ports_create(struct bsw_switch *owner, u32 frame_bytes);
void bsw_ports_destroy(struct bsw_switch *owner);

/* schedule.c; with the lock held */
void bsw_schedule_init(struct bsw_switch *owner);
void bsw_schedule(struct bsw_switch *owner, u64 now_ns); /* does what is due, sets the timer for what comes */

/* control_device.c; 0 or negative errno, told. owner without a core: opening gives -ENODEV. */
int bsw_control_create(struct bsw_switch *owner);

#endif
