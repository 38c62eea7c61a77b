/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Differences between the kernels that the driver builds with (6.1 to 7.3).
 */
#ifndef BUFFERSCOPE_COMPAT_H
#define BUFFERSCOPE_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/version.h>
#include <net/pkt_sched.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
static inline void hrtimer_setup(struct hrtimer *timer, enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

/* Runs the qdisc now, not in a softirq. From Linux 6.19 on it returns the packets that it dropped meanwhile. */
static inline void bsw_run_qdisc(struct Qdisc *qdisc)
{
	spinlock_t *lock = qdisc->flags & TCQ_F_NOLOCK ? NULL : qdisc_lock(qdisc);
	struct sk_buff *drops = NULL;

	if (lock)
		spin_lock(lock);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
	drops = qdisc_run(qdisc);
#else
	qdisc_run(qdisc);
#endif
	if (lock)
		spin_unlock(lock);
	kfree_skb_list(drops);
}

#endif
