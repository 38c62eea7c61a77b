/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Clones of both kinds, truncation, headers added and removed, lengths, registers, counters, indices out of range,
 * random numbers. Byte `what` of the packet requests operations; each packet leaves with a report of the values in egress.
 */
#include "begin.p4"

const bit<8> CLONE_INGRESS = 1;
const bit<8> CLONE_EGRESS = 2;
const bit<8> DROP_INGRESS = 4;
const bit<8> DROP_EGRESS = 8;
const bit<8> TRUNCATE_INGRESS = 16;
const bit<8> TRUNCATE_EGRESS = 32;
const bit<8> REMOVE = 64;
const bit<8> CLONE_NO_FIELDS = 128;

header request_h {
    bit<8> what;
    bit<32> index;
    bit<16> value;
}

header report_h {
    bit<32> instance_type;
    bit<16> kept;
    bit<16> not_kept;
    bit<16> kept_ingress_port;
    bit<32> packet_length;
    bit<16> egress_port;
    bit<16> egress_spec;
    bit<32> register_value;
    bit<16> random_value;
}

header extra_h {
    bit<32> number;
}

struct headers_t {
    report_h report;
    extra_h extra;
    request_h request;
}

struct metadata_t {
    @field_list(1) bit<16> kept;
    bit<16> not_kept;
    bit<32> register_value;
    bit<16> random_value;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        meta.not_kept = 0x1111;
        packet.extract(hdr.request);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    register<bit<20>>(16) values;
    register<bit<100>>(4) wide_values;
    counter(16, CounterType.packets_and_bytes) seen;
    bit<20> value;
    bit<100> wide_value;

    apply {
        std.egress_spec = 2;
        meta.kept = hdr.request.value;
        meta.not_kept = meta.not_kept + 1;
        value = 0xabcde;
        values.read(value, hdr.request.index);
        meta.register_value = (bit<32>)value;
        values.write(hdr.request.index, (bit<20>)(value + (bit<20>)hdr.request.value));
        wide_values.read(wide_value, (bit<32>)hdr.request.index[1:0]);
        wide_values.write((bit<32>)hdr.request.index[1:0], wide_value + 1);
        seen.count(hdr.request.index);
        random(meta.random_value, 16w10, 16w19);
        if (hdr.request.what & CLONE_INGRESS != 0) {
            clone_preserving_field_list(CloneType.I2E, 5, 1);
            meta.kept = meta.kept + 1;
        }
        if (hdr.request.what & CLONE_NO_FIELDS != 0) {
            clone(CloneType.I2E, 5);
        }
        if (hdr.request.what & TRUNCATE_INGRESS != 0) {
            truncate(40);
        }
        if (hdr.request.what & REMOVE != 0) {
            hdr.extra.setValid();
            hdr.extra.number = 0xdeadbeef;
            hdr.extra.setInvalid();
            hdr.extra.setValid();
        }
        if (hdr.request.what & DROP_INGRESS != 0) {
            mark_to_drop(std);
        }
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        hdr.report.setValid();
        hdr.report.instance_type = std.instance_type;
        hdr.report.kept = meta.kept;
        hdr.report.not_kept = meta.not_kept;
        hdr.report.kept_ingress_port = (bit<16>)std.ingress_port;
        hdr.report.packet_length = std.packet_length;
        hdr.report.egress_port = (bit<16>)std.egress_port;
        hdr.report.egress_spec = (bit<16>)std.egress_spec;
        hdr.report.register_value = meta.register_value;
        hdr.report.random_value = meta.random_value;
        if (std.instance_type == 0) {
            if (hdr.request.what & CLONE_EGRESS != 0) {
                clone_preserving_field_list(CloneType.E2E, 6, 1);
                hdr.request.value = 0x7777;
            }
            if (hdr.request.what & TRUNCATE_EGRESS != 0) {
                truncate(50);
                truncate(60);
            }
            if (hdr.request.what & DROP_EGRESS != 0) {
                mark_to_drop(std);
            }
        }
    }
}

control Update(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.report);
        packet.emit(hdr.extra);
        packet.emit(hdr.request);
    }
}

V1Switch(P(), Verify(), I(), E(), Update(), D()) main;
