/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Every timestamp of v1model, in front of the packet and of its clones. The program states no unit, so its
 * stamps are simple_switch's: us.
 */
#include "begin.p4"

#ifndef STATED_UNIT
#define STATED_UNIT
#define NS_PER_TICK meta.other.ns_per_tick
#endif

header report_h {
    bit<48> ingress;
    bit<48> egress;
    bit<32> enqueue;
    bit<32> in_queue;
    bit<16> ns_per_tick;
    bit<16> ns_per_tick_of_ingress;
}

struct headers_t {
    report_h report;
}

struct other_t {
    bit<16> ns_per_tick;    // in a nested struct, so it states no unit
}

struct metadata_t {
    other_t other;
    bit<16> seen_by_ingress;
    STATED_UNIT
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        meta.seen_by_ingress = NS_PER_TICK;
        clone(CloneType.I2E, 5);
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (std.instance_type == 0) {
            clone(CloneType.E2E, 6);
        }
        hdr.report.setValid();
        hdr.report.ingress = std.ingress_global_timestamp;
        hdr.report.egress = std.egress_global_timestamp;
        hdr.report.enqueue = std.enq_timestamp;
        hdr.report.in_queue = std.deq_timedelta;
        hdr.report.ns_per_tick = NS_PER_TICK;
        hdr.report.ns_per_tick_of_ingress = meta.seen_by_ingress;
    }
}

control Update(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.report);
    }
}

V1Switch(P(), Verify(), I(), E(), Update(), D()) main;
