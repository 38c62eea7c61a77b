// SPDX-License-Identifier: MIT
// Reads the offset of this process's time namespace, which cannot change while a process is in the namespace.
#include "kernel_clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../../lib/report.h"

#define OFFSETS "/proc/self/timens_offsets"

int kernel_clock_offset(int64_t *offset_ns)
{
	FILE *file = fopen(OFFSETS, "re");
	int64_t seconds, nanoseconds;
	char line[128];
	int err = file ? -EINVAL : errno == ENOENT ? 0 : -errno;

	*offset_ns = 0;
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "monotonic %" SCNd64 " %" SCNd64, &seconds, &nanoseconds) == 2) {
			*offset_ns = seconds * 1000000000 + nanoseconds;
			err = 0;
		}
	}
	if (file)
		fclose(file);
	if (err)
		complain("reading the clock's offset in this time namespace from " OFFSETS ": %s",
			 strerror(-err));
	return err;
}
