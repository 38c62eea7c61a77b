/* SPDX-License-Identifier: MIT
 * Walks the events of one page of the kernel's trace ring.
 */
#ifndef TRACE_RING_PAGE_H
#define TRACE_RING_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event_format.h"

struct page_account {
	uint32_t events;
	uint64_t missed;       /* events overwritten before this page, if the page has their number */
	bool missed_uncounted; /* events were overwritten, and the page does not have their number */
};

/* data: the event as its format describes it; may be unaligned. */
typedef void (*event_sink)(void *context, uint64_t ns, const uint8_t *data, uint32_t bytes);

/* Passes each event of a page, except discarded ones, to sink; bytes is the page's length. Returns 0, or -EBADMSG if
 * the page is damaged: sink and account then have the events before the damage.
 */
int ring_page_walk(const struct page_layout *layout, const uint8_t *page, size_t bytes, event_sink sink,
		   void *context, struct page_account *account);

/* A little-endian integer of 1, 2, 4 or 8 bytes at an address of any alignment. */
uint64_t ring_integer(const uint8_t *at, uint32_t bytes);

#endif
