/* SPDX-License-Identifier: MIT
 * The kernel stamps trace events with its own monotonic clock. In a time namespace (time_namespaces(7)) CLOCK_MONOTONIC
 * of all programs of a run differs from that clock by a constant.
 */
#ifndef TRACE_KERNEL_CLOCK_H
#define TRACE_KERNEL_CLOCK_H

#include <stdint.h>

/* Stores CLOCK_MONOTONIC of this process minus the kernel's clock; 0 on kernels without time namespaces. Returns 0, or
 * -errno after one message.
 */
int kernel_clock_offset(int64_t *offset_ns);

#endif
