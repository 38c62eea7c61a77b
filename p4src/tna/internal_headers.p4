/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Headers between pipelines; none leaves the switch. Ingress puts facts about a packet of a watched queue in front of
 * the packet. Egress puts the facts of a postcard in front of the mirrored copy. The first four bits are the kind.
 */
#ifndef TNA_INTERNAL_HEADERS_P4
#define TNA_INTERNAL_HEADERS_P4

#include "names.p4"
#include "../shared/headers.p4"
#include "../shared/metadata.p4"

typedef bit<4> kind_t;
const kind_t KIND_UNWATCHED = 0;        // no facts: this header is one byte
const kind_t KIND_WATCHED = 1;
const kind_t KIND_COPY = 2;

header kind_h {
    kind_t kind;
    bit<4> policy;                      // POLICY_*
}

/* These bytes are in the queue, too: the depth in cells includes them. */
header watched_h {
    kind_t kind;
    bit<4> policy;
    bit<6> unused;
    bit<1> report;
    bit<1> mark_instead_of_drop;
    bit<16> ingress_port;
    bit<16> egress_port;                // of the watched queue; a deflected packet leaves by another port
    bit<16> switch_id;
    bit<32> threshold;
    bit<48> ingress_ns;                 // the ingress parser's clock
}

/* 32 bytes: the most that a mirror carries on Tofino 1. */
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
    MirrorId_t session;                 // the mirror session of this packet's copy
    kind_t kind;                        // kind, policy, sojourn_ns: as in the copy's header, with its widths
    bit<4> policy;
    bit<32> sojourn_ns;
}

#endif
