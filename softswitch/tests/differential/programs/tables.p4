/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Tables of every match kind, with random entries: hit, miss, actions with arguments, several keys.
 */
#include "begin.p4"

struct headers_t {
    head_h head;
}

struct metadata_t {
    bit<16> seen;
}

PARSER {
    state start {
        packet.extract(hdr.head);
        transition accept;
    }
}

INGRESS {
    action add(bit<16> value) {
        meta.seen = meta.seen + value;
    }
    action shift(bit<4> by, bit<16> value) {
        meta.seen = (meta.seen << by) ^ value;
    }
    action drop() {
        mark_to_drop(std);
    }
    table exacts {
        key = {
            hdr.head.what: exact;
            std.ingress_port: exact;
        }
        actions = {
            add;
            shift;
            drop;
        }
        default_action = add(1);
    }
    table prefixes {
        key = {
            hdr.head.what: exact;
            hdr.head.result: lpm;
        }
        actions = {
            add;
            shift;
        }
        default_action = add(2);
    }
    table ternaries {
        key = {
            hdr.head.result: ternary;
            hdr.head.count: ternary;
            hdr.head.number[15:8]: exact;
        }
        actions = {
            add;
            shift;
            drop;
        }
        default_action = add(4);
    }
    table ranges {
        key = {
            hdr.head.number: range;
            hdr.head.count: optional;
            hdr.head.result: lpm;
        }
        actions = {
            add;
            shift;
        }
        default_action = add(8);
    }
    apply {
        std.egress_spec = 1;
        if (exacts.apply().hit) {
            prefixes.apply();
        }
        switch (ternaries.apply().action_run) {
            shift: {
                ranges.apply();
            }
            default: {
                meta.seen = meta.seen + 1;
            }
        }
        hdr.head.number = meta.seen;
    }
}

EGRESS {
    apply { }
}

#include "end.p4"
