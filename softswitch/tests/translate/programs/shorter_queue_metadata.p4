/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * shorter_queue.p4 as it would be if a metadata field held the length of egress_spec's queue: the program reads the same
 * field for port 2 and for port 3, and writes nothing to it in between.
 */
#include "begin.p4"

struct headers_t {
    ethernet_h ethernet;
}

struct metadata_t {
    bit<32> queue_packets;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
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
        std.egress_spec = 2;
        first = meta.queue_packets;
        std.egress_spec = 3;
        second = meta.queue_packets;
        if (first < second) {
            std.egress_spec = 2;
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
        packet.emit(hdr.ethernet);
    }
}

V1Switch(P(), Verify(), I(), E(), Update(), D()) main;
