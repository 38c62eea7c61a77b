/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * A parser that asks value sets, of one field and of two.
 */
#include "begin.p4"

header next_h {
    bit<16> kind;
    bit<16> value;
}

struct headers_t {
    head_h head;
    next_h[3] nexts;
}

struct metadata_t {
    bit<8> path;
}

struct pair_t {
    bit<16> kind;
    bit<16> value;
}

PARSER {
    value_set<bit<16>>(8) numbers;
    value_set<pair_t>(8) pairs;
    state start {
        packet.extract(hdr.head);
        transition select(hdr.head.number) {
            numbers: first;
            0x1000 .. 0x2000: second;
            default: accept;
        }
    }
    state first {
        meta.path = 1;
        packet.extract(hdr.nexts.next);
        transition second;
    }
    state second {
        packet.extract(hdr.nexts.next);
        meta.path = meta.path + 2;
        transition select(hdr.nexts.last.kind, hdr.nexts.last.value) {
            pairs: third;
            default: accept;
        }
    }
    state third {
        packet.extract(hdr.nexts.next);
        meta.path = meta.path + 4;
        transition accept;
    }
}

INGRESS {
    apply {
        std.egress_spec = 1;
        hdr.head.result = (bit<32>)meta.path;
    }
}

EGRESS {
    apply { }
}

#include "end.p4"
