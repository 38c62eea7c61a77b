/* SPDX-License-Identifier: MIT
 * The line of JSON that --status prints now and then on stdout.
 */
#ifndef COLLECTOR_STATUS_H
#define COLLECTOR_STATUS_H

#include <stdbool.h>
#include <stdint.h>

struct collector;

struct status {
	bool on;
	uint64_t every_ns;
	uint64_t started_ns, last_ns; /* CLOCK_MONOTONIC */
	uint64_t last_received;
};

void status_open(struct status *status, bool on, uint64_t every_ms, uint64_t now_ns);

/* While nothing arrives there is one line per second at most. */
bool status_is_due(const struct status *status, uint64_t received, uint64_t now_ns);

/* Never waits for a slow reader: skips the line if the pipe has no room for it. */
void status_show(struct collector *collector);

#endif
