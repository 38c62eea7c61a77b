/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The policy of a user's file (POLICY_FILE) behind the verdicts of shared/queue_policy.p4: at arrival a full buffer
 * drops first. The postcard has POLICY_OWN, and the policy's value in place of a threshold. Why the value is there and
 * not in a field of its own: p4src/README.md.
 */
#ifndef V1MODEL_OWN_POLICY_P4
#define V1MODEL_OWN_POLICY_P4

#include "policy_interface.p4"
#include POLICY_FILE

#define CONST(name, value) const int name = value;
#include "../shared/own_policy.def"

control ReadPacket(in headers_t hdr, in metadata_t meta, out policy_input_t seen) {
    apply {
        seen.packet_bytes = meta.queue.packet_bytes;
        seen.ecn = 0;
        if (hdr.ipv4.isValid()) {
            seen.ecn = hdr.ipv4.ecn;
        } else if (hdr.ipv6.isValid()) {
            seen.ecn = hdr.ipv6.ecn;
        }
        seen.port = (bit<9>)meta.queue.egress_port;
        seen.now_ns = 0;
        seen.sojourn_ns = 0;
        seen.depth_packets = 0;
        seen.depth_bytes = 0;
        seen.full = 0;
    }
}

/* Translates the policy's verdict into the program's. */
control TakeVerdict(in policy_verdict_t verdict, in bit<1> full, inout metadata_t meta) {
    apply {
        meta.queue.policy = (bit<8>)POLICY_OWN;
        meta.queue.threshold = verdict.value;
        meta.drop = full | verdict.drop;
        meta.mark = 0;
        if (meta.drop == 0 && verdict.mark == 1) {
            if (meta.queue.flags & (bit<8>)POSTCARD_ECT != 0) {
                meta.mark = 1;
            } else {
                meta.drop = 1;
            }
        }
    }
}

control OwnArrival(in headers_t hdr, inout metadata_t meta) {
    ReadPacket() read_packet;
    Arrival() arrival_policy;
    TakeVerdict() take_verdict;
    policy_input_t seen;
    policy_verdict_t verdict;

    apply {
        read_packet.apply(hdr, meta, seen);
        seen.now_ns = meta.queue.enqueue_switch_ns;
        seen.depth_packets = meta.queue.depth_packets;
        seen.depth_bytes = meta.queue.depth_bytes;
        seen.full = meta.drop;
        verdict.drop = 0;
        verdict.mark = 0;
        verdict.value = 0;
        arrival_policy.apply(seen, verdict);
        take_verdict.apply(verdict, seen.full, meta);
    }
}

control OwnDeparture(in headers_t hdr, in bit<48> now_ns, in bit<32> depth_packets, in bit<32> depth_bytes,
                     inout metadata_t meta) {
    ReadPacket() read_packet;
    Departure() departure_policy;
    TakeVerdict() take_verdict;
    policy_input_t seen;
    policy_verdict_t verdict;

    apply {
        read_packet.apply(hdr, meta, seen);
        seen.now_ns = now_ns;
        seen.sojourn_ns = now_ns - meta.queue.enqueue_switch_ns;
        seen.depth_packets = depth_packets;
        seen.depth_bytes = depth_bytes;
        verdict.drop = 0;
        verdict.mark = 0;
        verdict.value = meta.queue.threshold;
        departure_policy.apply(seen, verdict);
        take_verdict.apply(verdict, 0, meta);
    }
}

#endif
