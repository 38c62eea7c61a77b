// SPDX-License-Identifier: MIT
#include "recorded.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "../../lib/report.h"

enum { MOST_ECN = 3 };

int recorded_open(struct recorded *recorded, const char *path, uint64_t flows, uint64_t mtu_bytes)
{
	int err;

	*recorded = (struct recorded){.path = path, .flows = flows, .mtu_bytes = mtu_bytes};
	recorded->file = fopen(path, "rbe");
	if (recorded->file)
		return 0;
	err = errno;
	complain("--departures %s: %s", path, strerror(err));
	return -err;
}

void recorded_close(struct recorded *recorded)
{
	if (recorded->file)
		fclose(recorded->file);
	recorded->file = NULL;
}

static uint64_t number(const unsigned char *bytes, int count)
{
	uint64_t value = 0;

	while (count-- > 0)
		value = value << 8 | bytes[count];
	return value;
}

static struct departure ended(struct recorded *recorded, const char *problem)
{
	if (problem) {
		complain("%s: packet %" PRIu64 " %s", recorded->path, recorded->count, problem);
		recorded->failed = true;
	}
	return (struct departure){.due_ns = UINT64_MAX};
}

struct departure recorded_next(struct recorded *recorded)
{
	unsigned char bytes[RECORDED_BYTES];
	size_t got = fread(bytes, 1, sizeof(bytes), recorded->file);
	struct departure next = {
		.due_ns = number(bytes, 8),
		.ip_bytes = (uint32_t)number(bytes + 8, 2),
		.flow = (uint32_t)number(bytes + 10, 2),
		.ecn = bytes[12],
	};

	if (ferror(recorded->file))
		return ended(recorded, "cannot be read");
	if (got < sizeof(bytes))
		return ended(recorded, got ? "is cut off" : NULL);
	if (next.due_ns < recorded->latest_ns)
		return ended(recorded, "is due before the one before it");
	if (next.ip_bytes > recorded->mtu_bytes)
		return ended(recorded, "is longer than --mtu");
	if (next.flow >= recorded->flows)
		return ended(recorded, "has a flow beyond --flows");
	if (next.ecn > MOST_ECN)
		return ended(recorded, "has no ECN field of 0 to 3");
	recorded->latest_ns = next.due_ns;
	recorded->count++;
	return next;
}
