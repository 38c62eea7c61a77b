/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The place of a user's policy, behind the verdicts of shared/queue_policy.p4: at arrival a full buffer drops first. The
 * postcard has POLICY_OWN, and the policy's value in place of a threshold. Why the value is there and not in a field of
 * its own: p4src/README.md. The policy itself is compiled apart. compile/link.py puts it in the place of the tables
 * arrival_hook and departure_hook, whose keys are all that a policy sees, and whose action has the verdict.
 */
#ifndef V1MODEL_OWN_POLICY_P4
#define V1MODEL_OWN_POLICY_P4

#include "policy_interface.p4"

#define CONST(name, value) const int name = value;
#include "../shared/own_policy.def"

#define DECIDE \
    action decide(bit<1> drop, bit<1> mark, bit<32> value) { \
        verdict.drop = drop; \
        verdict.mark = mark; \
        verdict.value = value; \
    }
#define SEEN_BY_POLICY \
    seen.now_ns: exact @name("now_ns"); \
    seen.sojourn_ns: exact @name("sojourn_ns"); \
    seen.depth_packets: exact @name("depth_packets"); \
    seen.depth_bytes: exact @name("depth_bytes"); \
    seen.packet_bytes: exact @name("packet_bytes"); \
    seen.ecn: exact @name("ecn"); \
    seen.full: exact @name("full"); \
    seen.port: exact @name("port"); \
    verdict.value: exact @name("value");

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
    TakeVerdict() take_verdict;
    policy_input_t seen;
    policy_verdict_t verdict;

    DECIDE
    table arrival_hook {
        key = { SEEN_BY_POLICY }
        actions = { decide; }
    }

    apply {
        read_packet.apply(hdr, meta, seen);
        seen.now_ns = meta.queue.enqueue_switch_ns;
        seen.depth_packets = meta.queue.depth_packets;
        seen.depth_bytes = meta.queue.depth_bytes;
        seen.full = meta.drop;
        verdict.drop = 0;
        verdict.mark = 0;
        verdict.value = 0;
        arrival_hook.apply();
        take_verdict.apply(verdict, seen.full, meta);
    }
}

control OwnDeparture(in headers_t hdr, in bit<48> now_ns, in bit<32> depth_packets, in bit<32> depth_bytes,
                     inout metadata_t meta) {
    ReadPacket() read_packet;
    TakeVerdict() take_verdict;
    policy_input_t seen;
    policy_verdict_t verdict;

    DECIDE
    table departure_hook {
        key = { SEEN_BY_POLICY }
        actions = { decide; }
    }

    apply {
        read_packet.apply(hdr, meta, seen);
        seen.now_ns = now_ns;
        seen.sojourn_ns = now_ns - meta.queue.enqueue_switch_ns;
        seen.depth_packets = depth_packets;
        seen.depth_bytes = depth_bytes;
        verdict.drop = 0;
        verdict.mark = 0;
        verdict.value = meta.queue.threshold;
        departure_hook.apply();
        take_verdict.apply(verdict, 0, meta);
    }
}

#endif
