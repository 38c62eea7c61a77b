/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Multicast groups from a table, copies rewritten by their replica id and port, or pruned at the port they came from.
 */
#include "begin.p4"

struct headers_t {
    head_h head;
}

struct metadata_t {
    bit<16> vlan;
}

PARSER {
    state start {
        packet.extract(hdr.head);
        transition accept;
    }
}

INGRESS {
    action flood(bit<16> group, bit<16> vlan) {
        std.mcast_grp = group;
        meta.vlan = vlan;
    }
    action send(bit<9> port) {
        std.egress_spec = port;
    }
    action drop() {
        mark_to_drop(std);
    }
    table groups {
        key = {
            hdr.head.count: exact;
        }
        actions = {
            flood;
            send;
            drop;
        }
        default_action = drop();
    }
    apply {
        groups.apply();
        hdr.head.number = (bit<16>)std.ingress_port;
        if (hdr.head.what == 9) {
            std.mcast_grp = 0;
            std.egress_spec = 2;
        }
    }
}

EGRESS {
    action rewrite(bit<32> value) {
        hdr.head.result = value + std.instance_type;
    }
    action prune() {
        mark_to_drop(std);
    }
    table copies {
        key = {
            std.egress_rid: exact;
            std.egress_port: exact;
        }
        actions = {
            rewrite;
            prune;
            NoAction;
        }
        default_action = NoAction();
    }
    apply {
        if (std.egress_port == std.ingress_port && hdr.head.what[7:7] == 1) {
            mark_to_drop(std);
        }
        copies.apply();
        hdr.head.number = hdr.head.number + std.egress_rid + meta.vlan;
    }
}

#include "end.p4"
