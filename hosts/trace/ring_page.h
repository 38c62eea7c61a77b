/* SPDX-License-Identifier: MIT
 * The events of one page of the kernel's trace ring, with their times.
 */
#ifndef TRACE_RING_PAGE_H
#define TRACE_RING_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event_format.h"

struct page_account {
	uint32_t events;
	uint64_t missed;       /* events that the kernel overwrote before this page, where it says how many */
	bool missed_uncounted; /* it overwrote some and does not say how many */
};

/* data: the event as its format describes it, bytes of it; it may be unaligned. */
typedef void (*event_sink)(void *context, uint64_t ns, const uint8_t *data, uint32_t bytes);

/* Hands over the events of a page of which bytes were read. 0, or -EBADMSG when it is damaged: what stood before
 * the damage has been handed over, and account holds for that.
 */
int ring_page_walk(const struct page_layout *layout, const uint8_t *page, size_t bytes, event_sink sink,
		   void *context, struct page_account *account);

/* A little-endian integer of 1, 2, 4 or 8 bytes at an address of any alignment. */
uint64_t ring_integer(const uint8_t *at, uint32_t bytes);

#endif
