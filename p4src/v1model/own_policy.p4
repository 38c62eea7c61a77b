/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The place of a user's policy, behind the verdicts of shared/queue_policy.p4: at arrival a full buffer drops first. The
 * postcard has POLICY_OWN, and the policy's value in place of a threshold. Why the value is there and not in a field of
 * its own: p4src/README.md. The policy itself is compiled apart. compile/link.py puts it in the place of the tables
 * arrival_hook and departure_hook, whose keys are all that a policy sees, and whose action has the verdict but its queue.
 * The policy's metadata stays with the packet: at departure it still has the queue and the hash of the flow.
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

/* When the last packet left each port: then the transmission of the next one begins, unless this came later. */
register<bit<48>>(PORTS) last_departure_ns;

control HashFlow(in headers_t hdr, out bit<32> flow_hash) {
    bit<32> ports;
    bit<8> protocol;

    apply {
        ports = 0;
        protocol = 0;
        flow_hash = 0;
        if (hdr.tcp.isValid()) {
            ports = hdr.tcp.src_port ++ hdr.tcp.dst_port;
            protocol = 6;
        } else if (hdr.udp.isValid()) {
            ports = hdr.udp.src_port ++ hdr.udp.dst_port;
            protocol = 17;
        }
        if (hdr.ipv4.isValid()) {
            hash(flow_hash, HashAlgorithm.crc32, 32w0, { hdr.ipv4.src_addr, hdr.ipv4.dst_addr, protocol, ports },
                 64w0x100000000);
        } else if (hdr.ipv6.isValid()) {
            hash(flow_hash, HashAlgorithm.crc32, 32w0, { hdr.ipv6.src_addr, hdr.ipv6.dst_addr, protocol, ports },
                 64w0x100000000);
        }
    }
}

/* How long the packet waited for the link. BMv2's packets leave when their transmission begins; the soft switch's (which
 * fills the queue's registers) when it ends. A packet that was dropped at departure took no time of the link.
 */
control ReadWait(in bit<9> port, in bit<48> now_ns, in bit<48> arrival_ns, out bit<48> wait_ns) {
    bit<1> filled;
    bit<48> free_ns;

    apply {
        queue_registers_filled.read(filled, 0);
        last_departure_ns.read(free_ns, (bit<32>)port);
        wait_ns = now_ns - arrival_ns;
        if (filled == 1) {
            free_ns = free_ns - arrival_ns;     // modulo 2^48: above the sojourn if the link was free before the arrival
            wait_ns = free_ns <= wait_ns ? free_ns : 0;
        }
    }
}

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
        seen.wait_ns = 0;
        seen.flow_hash = 0;
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
    HashFlow() hash_flow;
    TakeVerdict() take_verdict;
    policy_input_t seen;
    policy_verdict_t verdict;

    DECIDE
    table arrival_hook {
        key = { SEEN_BY_POLICY seen.flow_hash: exact @name("flow_hash"); }
        actions = { decide; }
    }

    apply {
        read_packet.apply(hdr, meta, seen);
        hash_flow.apply(hdr, seen.flow_hash);
        seen.now_ns = meta.queue.enqueue_switch_ns;
        seen.depth_packets = meta.queue.depth_packets;
        seen.depth_bytes = meta.queue.depth_bytes;
        seen.full = meta.drop;
        verdict.drop = 0;
        verdict.mark = 0;
        verdict.value = 0;
        verdict.queue = 0;
        arrival_hook.apply();
        take_verdict.apply(verdict, seen.full, meta);
    }
}

control OwnDeparture(in headers_t hdr, in bit<48> now_ns, in bit<32> depth_packets, in bit<32> depth_bytes,
                     inout metadata_t meta) {
    ReadPacket() read_packet;
    ReadWait() read_wait;
    TakeVerdict() take_verdict;
    policy_input_t seen;
    policy_verdict_t verdict;

    DECIDE
    table departure_hook {
        key = { SEEN_BY_POLICY seen.wait_ns: exact @name("wait_ns"); }
        actions = { decide; }
    }

    apply {
        read_packet.apply(hdr, meta, seen);
        seen.now_ns = now_ns;
        seen.sojourn_ns = now_ns - meta.queue.enqueue_switch_ns;
        read_wait.apply(seen.port, now_ns, meta.queue.enqueue_switch_ns, seen.wait_ns);
        seen.depth_packets = depth_packets;
        seen.depth_bytes = depth_bytes;
        verdict.drop = 0;
        verdict.mark = 0;
        verdict.value = meta.queue.threshold;
        verdict.queue = 0;
        departure_hook.apply();
        take_verdict.apply(verdict, 0, meta);
        if (meta.drop == 0) {
            last_departure_ns.write((bit<32>)seen.port, now_ns);
        }
    }
}

#endif
