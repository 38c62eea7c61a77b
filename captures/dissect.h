/* SPDX-License-Identifier: MIT
 * The headers of a frame: link layer, VLAN tags, IP with its extensions, TCP or UDP.
 */
#ifndef CAPTURES_DISSECT_H
#define CAPTURES_DISSECT_H

#include <stdbool.h>

#include "capture.h"
#include "wire/captured_packet.h"

/* Whether frames of this link type (LINKTYPE_*) can be read. */
bool dissect_knows(uint16_t link_type);

/* Fills all of `packet` but payload_captured, for a frame of any content. Returns the captured part of the payload of
 * TCP or UDP, `bytes` long; NULL without any.
 */
const uint8_t *dissect(const struct frame *frame, struct captured_packet *packet, uint32_t *bytes);

#endif
