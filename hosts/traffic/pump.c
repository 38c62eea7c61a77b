// SPDX-License-Identifier: MIT
#include "pump.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../../lib/report.h"

int pump_open(struct pump *pump)
{
	int err;

	pump->fd = open(PUMP_DEVICE, O_RDWR | O_CLOEXEC);
	err = pump->fd < 0 ? -errno : 0;
	if (!err || err == -ENOENT)
		return 0;
	complain("opening %s: %s", PUMP_DEVICE, strerror(-err));
	return err;
}

void pump_close(struct pump *pump)
{
	if (pump->fd >= 0)
		close(pump->fd);
	pump->fd = -1;
}

bool pump_is_open(const struct pump *pump)
{
	return pump->fd >= 0;
}

static int ask(const struct pump *pump, unsigned long request, void *argument)
{
	return ioctl(pump->fd, request, argument) ? -errno : 0;
}

int pump_send(const struct pump *pump, int fd, uint64_t bytes, uint32_t window_segments)
{
	struct pump_send send = {.fd = fd, .window_segments = window_segments, .bytes = bytes};

	return ask(pump, PUMP_SEND, &send);
}

int pump_discard(const struct pump *pump, int fd, uint32_t id)
{
	struct pump_discard discard = {.fd = fd, .id = id};

	return ask(pump, PUMP_DISCARD, &discard);
}

int pump_stop(const struct pump *pump, int fd, uint64_t *written_bytes, int *error)
{
	struct pump_stop stop = {.fd = fd};
	int err = ask(pump, PUMP_STOP, &stop);

	*written_bytes = stop.written_bytes;
	*error = stop.error;
	return err;
}

int pump_counts(const struct pump *pump, struct pump_count *counts, uint32_t capacity)
{
	struct pump_counts asked = {.counts = (uintptr_t)counts, .capacity = capacity};
	int err = ask(pump, PUMP_COUNTS, &asked);

	return err ? err : (int)asked.count;
}
