/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * What travels in front of packets inside the switch and never leaves it: ingress tells egress what it knows of a packet
 * of a watched queue, and egress tells the copy that becomes a postcard. The first four bits say which it is.
 */
#ifndef TNA_INTERNAL_HEADERS_P4
#define TNA_INTERNAL_HEADERS_P4

#include "names.p4"
#include "../shared/headers.p4"
#include "../shared/metadata.p4"

typedef bit<4> kind_t;
const kind_t KIND_UNWATCHED = 0;        // leaves as it came: this header is one byte
const kind_t KIND_WATCHED = 1;
const kind_t KIND_COPY = 2;

header kind_h {
    kind_t kind;
    bit<4> policy;                      // POLICY_*
}

/* Its bytes lie in the queue too, and cells count them. */
header watched_h {
    kind_t kind;
    bit<4> policy;
    bit<6> unused;
    bit<1> report;
    bit<1> mark_instead_of_drop;
    bit<16> ingress_port;
    bit<16> egress_port;                // of the queue it was for: a deflected packet comes to another
    bit<16> switch_id;
    bit<32> threshold;
    bit<48> ingress_ns;                 // the ingress parser's clock
}

/* 32 bytes: more a mirror cannot carry on Tofino 1. */
header copy_h {
    kind_t kind;
    bit<4> policy;
    bit<8> flags;
    bit<16> switch_id;
    bit<16> ingress_port;
    bit<16> egress_port;
    bit<32> card_seq;
    bit<48> enqueue_switch_ns;
    bit<32> sojourn_ns;
    bit<32> depth_cells;
    bit<32> threshold;
    bit<16> packet_bytes;
}

struct ingress_metadata_t {
    metadata_t packet;
    kind_h unwatched;
    watched_h watched;
}

struct egress_metadata_t {
    metadata_t packet;
    watched_h watched;
    copy_h copy;
    MirrorId_t session;                 // where a copy of this packet goes
    kind_t kind;                        // of the copy that this packet sends, with two of its facts as wide as there
    bit<4> policy;
    bit<32> sojourn_ns;
}

#endif
