/* SPDX-License-Identifier: MIT
 * Hands due frames to the kernel. There is no head-of-line blocking between ports: when the kernel refuses a frame,
 * only the frames of the same port wait, in order. A waiting frame occupies a packet of the pool. While more than half
 * of the pool waits, the shell reads no more frames: the kernel drops and counts frames that do not fit in the rings,
 * and postcards still get packets.
 */
#include <errno.h>
#include <stdlib.h>

#include "shell.h"

enum {
	HELD_SHARE = 2, /* reading stops while more than 1 / HELD_SHARE of the pool waits */
};

int outputs_open(struct backlog *backlog, uint32_t packets)
{
	*backlog = (struct backlog){.nodes = calloc(packets, sizeof(*backlog->nodes)), .packets = packets};
	if (!backlog->nodes)
		return -ENOMEM;
	for (uint32_t index = 0; index < packets; index++) {
		backlog->nodes[index].next = backlog->free;
		backlog->free = &backlog->nodes[index];
	}
	return 0;
}

void outputs_close(struct backlog *backlog)
{
	free(backlog->nodes);
	*backlog = (struct backlog){0};
}

static void flush_all(struct shell *shell)
{
	for (uint32_t index = 0; index < shell->port_count; index++)
		if (shell->ports[index].transmit.count)
			transmit_flush(&shell->ports[index].transmit, &shell->backlog, shell->core);
}

void outputs_send_due(struct shell *shell, uint64_t now_ns)
{
	struct core_output output;
	bool more = true;

	while (more) {
		flush_all(shell);
		for (int count = 0; more && count < SHELL_BATCH; count++) {
			more = core_take_output(shell->core, now_ns, &output);
			if (more)
				transmit_add(&shell->by_number[output.port]->transmit, &shell->backlog,
					     &output);
		}
	}
	flush_all(shell);
}

uint64_t outputs_retry_ns(const struct shell *shell)
{
	uint64_t retry_ns = CORE_NEVER_NS;

	for (uint32_t index = 0; index < shell->port_count; index++) {
		const struct transmit *transmit = &shell->ports[index].transmit;

		if (transmit->count && transmit->retry_ns < retry_ns)
			retry_ns = transmit->retry_ns;
	}
	return retry_ns;
}

bool outputs_are_congested(const struct shell *shell)
{
	return shell->backlog.held > shell->backlog.packets / HELD_SHARE;
}
