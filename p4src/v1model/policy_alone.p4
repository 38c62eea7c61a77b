/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * A user's policy (POLICY_FILE) as a program of its own, which compile/link.py puts into bufferscope's.
 */
#include <core.p4>
#include <v1model.p4>
#include "policy_interface.p4"
#include POLICY_FILE

struct no_headers_t {
}

struct policy_metadata_t {
    policy_input_t seen;
    policy_verdict_t verdict;
}

parser NoParser(packet_in packet, out no_headers_t hdr, inout policy_metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    state start {
        transition accept;
    }
}

control NoChecksum(inout no_headers_t hdr, inout policy_metadata_t meta) {
    apply { }
}

control PolicyIngress(inout no_headers_t hdr, inout policy_metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    Arrival() arrival_policy;

    apply {
        arrival_policy.apply(meta.seen, meta.verdict);
    }
}

control PolicyEgress(inout no_headers_t hdr, inout policy_metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    Departure() departure_policy;

    apply {
        departure_policy.apply(meta.seen, meta.verdict);
    }
}

control NoDeparser(packet_out packet, in no_headers_t hdr) {
    apply { }
}

V1Switch(NoParser(), NoChecksum(), PolicyIngress(), PolicyEgress(), NoChecksum(), NoDeparser()) main;
