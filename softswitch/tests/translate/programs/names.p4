/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Names that mean something in C, or that clash once dots are gone; conditions in actions; headers compared and copied.
 */
#include "begin.p4"

header int_h {
    bit<8> while;
    bit<8> valid;
    bit<8> static;
    bit<8> phv;
}

struct headers_t {
    int_h packet;
    int_h pipeline;
    int_h main;
    int_h struct_;
}

struct metadata_t {
    bit<8> double;
    bit<8> a_b;
    bit<8> signed;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.packet);
        transition select(hdr.packet.while) {
            1: register;
            default: accept;
        }
    }
    state register {
        packet.extract(hdr.pipeline);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control memcpy(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action return_(bit<8> long, bit<8> packet, bit<8> phv) {
        if (hdr.packet.static == 1) {
            meta.double = long;
            if (hdr.packet.phv == 2) {
                meta.a_b = packet;
            } else {
                meta.a_b = phv;
            }
        } else if (hdr.packet.static == 2) {
            meta.double = 0x22;
        } else {
            meta.double = 0x33;
            if (hdr.packet.phv == 3) {
                meta.signed = 0x44;
            }
        }
    }
    action memset() {
        meta.double = 0x55;
    }
    table goto {
        key = { hdr.packet.static: exact @name("? what*/ \"is\" this \\"); }
        actions = { return_; memset; }
        default_action = return_(0x61, 0x62, 0x63);
    }
    apply {
        std.egress_spec = 1;
        goto.apply();
        hdr.main.setValid();
        hdr.main.while = meta.double;
        hdr.main.valid = meta.a_b;
        hdr.main.static = meta.signed;
        hdr.main.phv = 0;
        hdr.struct_ = hdr.pipeline;
        if (hdr.packet == hdr.pipeline) {
            hdr.main.phv = 1;
        }
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply { }
}

control Update(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.main);
        packet.emit(hdr.struct_);
    }
}

V1Switch(P(), Verify(), memcpy(), E(), Update(), D()) main;
