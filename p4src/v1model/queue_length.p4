/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The length of each queue on v1model, whose ingress has no metadata field for it. The soft switch fills three
 * registers; they are right even if a queue refuses a packet by its own limit. BMv2 fills none, so there the length is
 * the difference of two counters with one writer each: ingress counts admitted packets, egress departed packets. (One
 * register with two writers would drift on BMv2, whose pipelines run concurrently.) All arithmetic is modulo 2^32, so
 * the counters may wrap. Why registers and not metadata: p4src/README.md.
 */
#ifndef V1MODEL_QUEUE_LENGTH_P4
#define V1MODEL_QUEUE_LENGTH_P4

#include "../shared/sizes.p4"

/* The soft switch finds these three by name (docs/target-soft.md). The first is 1 if the other two are filled. */
register<bit<1>>(1) queue_registers_filled;
register<bit<32>>(PORTS) queue_packets;
register<bit<32>>(PORTS) queue_bytes;

/* Not used if queue_registers_filled is 1. */
register<bit<32>>(PORTS) admitted_packets;
register<bit<32>>(PORTS) admitted_bytes;
register<bit<32>>(PORTS) departed_packets;
register<bit<32>>(PORTS) departed_bytes;

control ReadDepth(in bit<9> port, out bit<32> depth_packets, out bit<32> depth_bytes) {
    apply {
        bit<1> filled;
        bit<32> admitted;
        bit<32> departed;
        queue_registers_filled.read(filled, 0);
        if (filled == 1) {
            queue_packets.read(depth_packets, (bit<32>)port);
            queue_bytes.read(depth_bytes, (bit<32>)port);
        } else {
            admitted_packets.read(admitted, (bit<32>)port);
            departed_packets.read(departed, (bit<32>)port);
            depth_packets = admitted - departed;
            admitted_bytes.read(admitted, (bit<32>)port);
            departed_bytes.read(departed, (bit<32>)port);
            depth_bytes = admitted - departed;
        }
    }
}

/* Called by ingress only. */
control CountAdmitted(in bit<9> port, in bit<16> packet_bytes) {
    apply {
        bit<1> filled;
        bit<32> count;
        queue_registers_filled.read(filled, 0);
        if (filled == 0) {
            admitted_packets.read(count, (bit<32>)port);
            admitted_packets.write((bit<32>)port, count + 1);
            admitted_bytes.read(count, (bit<32>)port);
            admitted_bytes.write((bit<32>)port, count + (bit<32>)packet_bytes);
        }
    }
}

/* Called by egress only. */
control CountDeparted(in bit<9> port, in bit<16> packet_bytes) {
    apply {
        bit<1> filled;
        bit<32> count;
        queue_registers_filled.read(filled, 0);
        if (filled == 0) {
            departed_packets.read(count, (bit<32>)port);
            departed_packets.write((bit<32>)port, count + 1);
            departed_bytes.read(count, (bit<32>)port);
            departed_bytes.write((bit<32>)port, count + (bit<32>)packet_bytes);
        }
    }
}

#endif
