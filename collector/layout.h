/* SPDX-License-Identifier: MIT
 * Offsets of a postcard's fields, to read a few fields without decoding all: offsetof(struct postcard_layout, field).
 */
#ifndef COLLECTOR_LAYOUT_H
#define COLLECTOR_LAYOUT_H

#include <stddef.h>

#include "wire/postcard.h"

/* For offsetof only. All members are bytes, so there is no padding. */
struct postcard_layout {
#define FIELD(bits, name) uint8_t name[bits / 8];
#include "wire/postcard.def"
};
_Static_assert(sizeof(struct postcard_layout) == POSTCARD_BYTES, "the layout has padding");

#endif
