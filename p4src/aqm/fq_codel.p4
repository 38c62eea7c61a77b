/* SPDX-License-Identifier: MIT
 * FQ-CoDel (RFC 8290): flows are hashed to 1024 queues, new queues are served first, each queue has CoDel of its own. The
 * order is that of the soft switch's scheduler fq (section 4.2; quantum 1514 bytes).
 *
 * Departures from the RFC: a full buffer (BUF) drops the packet that arrives, not one of the fattest queue (section 4.1.2):
 * a P4 program cannot remove a packet that has been queued. The hash is multiplicative, of CRC-32 of the 5-tuple and
 * perturbation. The postcard's value is the number of the queue. Of one watched port.
 */
#define CODEL_QUEUES 1024
#include "laws/codel.p4"

/* Of each queue, modulo 2^32. Arrival writes the first two, departure the others. */
register<bit<32>>(CODEL_QUEUES) came_packets;
register<bit<32>>(CODEL_QUEUES) came_bytes;
register<bit<32>>(CODEL_QUEUES) left_packets;
register<bit<32>>(CODEL_QUEUES) left_bytes;

@scheduler("fq", 1024, 1514)
control Arrival(in policy_input_t seen, inout policy_verdict_t verdict) {
    bit<32> mixed; bit<32> perturb; bit<32> count;
    action set(bit<32> perturbation) { perturb = perturbation; }
    table parameters { actions = { set; } default_action = set(0); }
    apply {
        parameters.apply();
        mixed = (seen.flow_hash ^ perturb) * 32w0x9e3779b1;
        verdict.queue = (bit<16>)(mixed >> 22);
        verdict.value = mixed >> 22;
        if (seen.full == 0) {
            came_packets.read(count, verdict.value);
            came_packets.write(verdict.value, count + 1);
            came_bytes.read(count, verdict.value);
            came_bytes.write(verdict.value, count + (bit<32>)seen.packet_bytes);
        }
    }
}

control Departure(in policy_input_t seen, inout policy_verdict_t verdict) {
    Codel() codel;
    bit<32> target; bit<32> interval; bit<32> maxpacket; bit<1> with_ecn; bit<1> hit; bit<1> marks;
    bit<32> came; bit<32> left; bit<32> packets; bit<32> bytes; bit<32> count;
    action set(bit<32> target_ns, bit<32> interval_ns, bit<32> maxpacket_bytes, bit<1> ecn) {
        target = target_ns; interval = interval_ns; maxpacket = maxpacket_bytes; with_ecn = ecn;
    }
    table parameters { actions = { set; } default_action = set(5000000, 100000000, 1514, 1); }
    apply {
        parameters.apply();
        came_packets.read(came, (bit<32>)verdict.queue);
        left_packets.read(left, (bit<32>)verdict.queue);
        left = left + 1;
        left_packets.write((bit<32>)verdict.queue, left);
        packets = came - left;
        came_bytes.read(came, (bit<32>)verdict.queue);
        left_bytes.read(left, (bit<32>)verdict.queue);
        left = left + (bit<32>)seen.packet_bytes;
        left_bytes.write((bit<32>)verdict.queue, left);
        bytes = came - left;
        marks = with_ecn & (bit<1>)(seen.ecn != 0);
        codel.apply((bit<32>)verdict.queue, seen.now_ns - seen.sojourn_ns + seen.wait_ns, seen.wait_ns, packets, bytes,
                    target, interval, maxpacket, marks, hit, count);
        verdict.mark = hit & marks;
        verdict.drop = hit & ~marks;
    }
}
