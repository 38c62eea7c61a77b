/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Differences between the kernels that the driver builds with (6.1 to 7.3).
 */
#ifndef BUFFERSCOPE_COMPAT_H
#define BUFFERSCOPE_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
static inline void hrtimer_setup(struct hrtimer *timer, enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

#endif
