/* SPDX-License-Identifier: MIT
 * The kernel's clocks in ns. Inline, because the switch reads a clock several times per frame.
 */
#ifndef LIB_CLOCK_NS_H
#define LIB_CLOCK_NS_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline uint64_t mono_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

#endif
