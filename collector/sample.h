/* SPDX-License-Identifier: MIT
 * Sample postcards of an imagined queue, for measurements and tests. The same number and time give the same postcard in
 * every program.
 */
#ifndef COLLECTOR_SAMPLE_H
#define COLLECTOR_SAMPLE_H

#include <stdint.h>

/* Encodes a whole postcard into buffer: a forwarded TCP segment of 1514 bytes, number card_seq. */
void sample_encode(uint8_t *buffer, uint32_t card_seq, uint64_t enqueue_ns);

/* Changes only the fields that differ between consecutive postcards: a tenth of the work. */
void sample_renumber(uint8_t *buffer, uint32_t card_seq, uint64_t enqueue_ns);

#endif
