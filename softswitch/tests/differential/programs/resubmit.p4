/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Packets that ingress resubmits while a register says so: headers come back as they were, metadata by two field lists.
 */
#include "begin.p4"

struct headers_t {
    head_h head;
}

struct metadata_t {
    @field_list(1, 2) bit<8> passes;
    @field_list(2) bit<16> kept;
    bit<16> lost;
}

PARSER {
    state start {
        packet.extract(hdr.head);
        meta.lost = meta.lost + 7;
        transition accept;
    }
}

INGRESS {
    register<bit<16>>(16) credits;
    bit<16> credit;
    apply {
        std.egress_spec = 1;
        credits.read(credit, (bit<32>)hdr.head.what[3:0]);
        meta.lost = meta.lost + hdr.head.number;
        meta.kept = meta.kept + meta.lost + (bit<16>)std.instance_type;
        hdr.head.number = hdr.head.number + 1;
        hdr.head.count = meta.passes;
        if (credit > 9 && meta.passes < 5) {
            credit = credit - 10;
            meta.passes = meta.passes + 1;
            if (hdr.head.what[7:7] == 1) {
                resubmit_preserving_field_list(1);
            } else {
                resubmit_preserving_field_list(2);
            }
            if (hdr.head.what[6:6] == 1) {
                mark_to_drop(std);
            }
        } else {
            credit = credit + (hdr.head.number & 63);
            if (hdr.head.what[5:4] == 3) {
                mark_to_drop(std);
            }
        }
        credits.write((bit<32>)hdr.head.what[3:0], credit);
        hdr.head.result = meta.kept ++ credit;
    }
}

EGRESS {
    apply {
        hdr.head.what = (bit<8>)std.instance_type;
    }
}

#include "end.p4"
