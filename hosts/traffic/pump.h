/* SPDX-License-Identifier: MIT
 * The kernel's device that sends and discards for programs (kernel_pump/pump.h). In a kernel without the device,
 * programs send and receive themselves.
 */
#ifndef TRAFFIC_PUMP_PROGRAM_H
#define TRAFFIC_PUMP_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel_pump/pump.h"

struct pump {
	int fd; /* -1: not open, or the kernel lacks the device */
};

/* Opens the device if there is one. 0, or -errno after one message. */
int pump_open(struct pump *pump);
void pump_close(struct pump *pump);
bool pump_is_open(const struct pump *pump);

/* pump_send, pump_discard and pump_stop return 0 or -errno. */
/* Sends `bytes` and a FIN; with `bytes` 0 sends until pump_stop. `window_segments` bounds the congestion window; 0: no
 * bound.
 */
int pump_send(const struct pump *pump, int fd, uint64_t bytes, uint32_t window_segments);
int pump_discard(const struct pump *pump, int fd, uint32_t id);
/* *error becomes the error of the last write: 0 or -errno. */
int pump_stop(const struct pump *pump, int fd, uint64_t *written_bytes, int *error);

/* Returns the number of counts read, or -errno. */
int pump_counts(const struct pump *pump, struct pump_count *counts, uint32_t capacity);

#endif
