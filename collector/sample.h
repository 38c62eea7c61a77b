/* SPDX-License-Identifier: MIT
 * Postcards of an imagined queue, for measuring and testing: any two programs make the same ones from the
 * same number.
 */
#ifndef COLLECTOR_SAMPLE_H
#define COLLECTOR_SAMPLE_H

#include <stdint.h>

/* Encodes a whole postcard into buffer: a forwarded TCP segment of 1514 bytes, number card_seq. */
void sample_encode(uint8_t *buffer, uint32_t card_seq, uint64_t enqueue_ns);

/* Changes only what differs from one postcard to the next: a tenth of the work. */
void sample_renumber(uint8_t *buffer, uint32_t card_seq, uint64_t enqueue_ns);

#endif
