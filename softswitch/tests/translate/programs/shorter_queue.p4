/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Each packet goes to the shorter queue of ports 2 and 3. It carries both lengths in packets, and their sum in bytes.
 */
#include "begin.p4"

header lengths_h {
    bit<32> first;
    bit<32> second;
    bit<32> bytes;
}

struct headers_t {
    lengths_h lengths;
}

struct metadata_t {
}

register<bit<1>>(1) queue_registers_filled;
register<bit<32>>(512) queue_packets;
register<bit<32>>(512) queue_bytes;

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.lengths);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    bit<32> first;
    bit<32> second;

    apply {
        queue_packets.read(first, 2);
        queue_packets.read(second, 3);
        std.egress_spec = 2;
        if (second < first) {
            std.egress_spec = 3;
        }
        hdr.lengths.first = first;
        hdr.lengths.second = second;
        queue_bytes.read(first, 2);
        queue_bytes.read(second, 3);
        hdr.lengths.bytes = first + second;
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
        packet.emit(hdr.lengths);
    }
}

V1Switch(P(), Verify(), I(), E(), Update(), D()) main;
