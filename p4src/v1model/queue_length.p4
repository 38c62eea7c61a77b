/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The length of each queue on v1model, where ingress cannot see it: the difference of two counters with one writer
 * each. Ingress counts what it admits, egress what has departed. (One register with two writers would drift on
 * BMv2, whose pipelines run concurrently.) All arithmetic is modulo 2^32, so the counters may wrap.
 */
#ifndef V1MODEL_QUEUE_LENGTH_P4
#define V1MODEL_QUEUE_LENGTH_P4

#include "../shared/sizes.p4"

register<bit<32>>(PORTS) admitted_packets;
register<bit<32>>(PORTS) admitted_bytes;
register<bit<32>>(PORTS) departed_packets;
register<bit<32>>(PORTS) departed_bytes;

control ReadDepth(in bit<9> port, out bit<32> depth_packets, out bit<32> depth_bytes) {
    apply {
        bit<32> admitted;
        bit<32> departed;
        admitted_packets.read(admitted, (bit<32>)port);
        departed_packets.read(departed, (bit<32>)port);
        depth_packets = admitted - departed;
        admitted_bytes.read(admitted, (bit<32>)port);
        departed_bytes.read(departed, (bit<32>)port);
        depth_bytes = admitted - departed;
    }
}

/* Called by ingress only. */
control CountAdmitted(in bit<9> port, in bit<16> packet_bytes) {
    apply {
        bit<32> count;
        admitted_packets.read(count, (bit<32>)port);
        admitted_packets.write((bit<32>)port, count + 1);
        admitted_bytes.read(count, (bit<32>)port);
        admitted_bytes.write((bit<32>)port, count + (bit<32>)packet_bytes);
    }
}

/* Called by egress only. */
control CountDeparted(in bit<9> port, in bit<16> packet_bytes) {
    apply {
        bit<32> count;
        departed_packets.read(count, (bit<32>)port);
        departed_packets.write((bit<32>)port, count + 1);
        departed_bytes.read(count, (bit<32>)port);
        departed_bytes.write((bit<32>)port, count + (bit<32>)packet_bytes);
    }
}

#endif
