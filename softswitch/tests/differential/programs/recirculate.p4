/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Packets that egress recirculates up to four times, each time with a label more; registers of both controls.
 */
#include "begin.p4"

header label_h {
    bit<16> pass;
    bit<16> length;
    bit<32> instance;
    bit<32> seen;
}

struct headers_t {
    head_h head;
    label_h[4] labels;
}

struct metadata_t {
    @field_list(1, 2) bit<8> passes;
    @field_list(2) bit<32> kept;
    bit<32> lost;
}

PARSER {
    state start {
        packet.extract(hdr.head);
        transition select(hdr.head.count) {
            0: accept;
            default: label;
        }
    }
    state label {
        packet.extract(hdr.labels.next);
        transition select(hdr.labels.last.pass) {
            0: accept;
            default: label;
        }
    }
}

INGRESS {
    register<bit<32>>(4) seen;
    apply {
        std.egress_spec = hdr.head.what[7:7] == 0 ? 9w1 : 9w3;
        seen.read(meta.lost, (bit<32>)meta.passes & 3);
        seen.write((bit<32>)meta.passes & 3, meta.lost + (bit<32>)hdr.head.number);
        meta.kept = meta.kept * 3 + meta.lost + std.instance_type;
        if (hdr.head.what[6:4] == 7 && meta.passes == 2) {
            mark_to_drop(std);
        }
    }
}

EGRESS {
    register<bit<32>>(8) kept;
    bit<32> before;
    apply {
        kept.read(before, (bit<32>)hdr.head.what[2:0]);
        kept.write((bit<32>)hdr.head.what[2:0], before ^ (meta.kept << 1));
        hdr.head.result = meta.kept + before;
        hdr.labels.push_front(1);
        hdr.labels[0] = { (bit<16>)meta.passes, (bit<16>)std.packet_length, std.instance_type, meta.lost };
        if (meta.passes < (bit<8>)hdr.head.what[1:0]) {
            meta.passes = meta.passes + 1;
            hdr.head.count = meta.passes;
            if (hdr.head.what[3:3] == 1) {
                recirculate_preserving_field_list(1);
            } else {
                recirculate_preserving_field_list(2);
            }
        }
    }
}

#include "end.p4"
