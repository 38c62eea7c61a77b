/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Clones of ingress and egress to the ports and groups of several sessions, with and without metadata; clones of clones.
 */
#include "begin.p4"

header report_h {
    bit<32> instance;
    bit<16> kept;
    bit<16> lost;
    bit<16> replica;
    bit<16> length;
}

struct headers_t {
    report_h[3] reports;
    head_h head;
}

struct metadata_t {
    @field_list(1) bit<16> kept;
    @field_list(1) bit<8> depth;
    bit<16> lost;
}

PARSER {
    state start {
        packet.extract(hdr.head);
        meta.lost = hdr.head.number;
        transition accept;
    }
}

INGRESS {
    apply {
        std.egress_spec = 4;
        meta.kept = hdr.head.number ^ 0x5555;
        meta.lost = meta.lost + 1;
        if (hdr.head.what[0:0] == 1) {
            clone_preserving_field_list(CloneType.I2E, (bit<32>)hdr.head.count[2:0], 1);
        }
        if (hdr.head.what[1:1] == 1) {
            clone(CloneType.I2E, (bit<32>)hdr.head.count[5:3]);
        }
        hdr.head.result = 0x01020304;
        meta.kept = meta.kept + 1;
        if (hdr.head.what[2:2] == 1) {
            truncate(40);
        }
        if (hdr.head.what[4:3] == 3) {
            mark_to_drop(std);
        }
    }
}

EGRESS {
    apply {
        hdr.reports.push_front(1);
        hdr.reports[0] = { std.instance_type, meta.kept, meta.lost, std.egress_rid, (bit<16>)std.packet_length };
        meta.depth = meta.depth + 1;
        if (hdr.head.what[5:5] == 1 && meta.depth < 3) {
            clone_preserving_field_list(CloneType.E2E, (bit<32>)hdr.head.number[2:0], 1);
            meta.kept = 0xdead;
            hdr.head.count = hdr.head.count + 1;
        }
        if (hdr.head.what[6:6] == 1 && std.instance_type == 0) {
            truncate(30);
        }
        if (hdr.head.what[7:7] == 1 && std.egress_port == 4) {
            mark_to_drop(std);
        }
    }
}

#include "end.p4"
