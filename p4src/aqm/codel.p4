/* SPDX-License-Identifier: MIT
 * CoDel (RFC 8289). ECN-capable packets are marked (section 3.1 leaves this open), unless ecn=0. The postcard's value is
 * the RFC's count while the queue is in the dropping state, else 0. Of one watched port.
 */
#define CODEL_QUEUES 1
#include "laws/codel.p4"

control Arrival(in policy_input_t seen, inout policy_verdict_t verdict) { apply { } }

control Departure(in policy_input_t seen, inout policy_verdict_t verdict) {
    Codel() codel;
    bit<32> target; bit<32> interval; bit<32> maxpacket; bit<1> with_ecn; bit<1> hit; bit<1> marks;
    action set(bit<32> target_ns, bit<32> interval_ns, bit<32> maxpacket_bytes, bit<1> ecn) {
        target = target_ns; interval = interval_ns; maxpacket = maxpacket_bytes; with_ecn = ecn;
    }
    table parameters { actions = { set; } default_action = set(5000000, 100000000, 1514, 1); }
    apply {
        parameters.apply();
        marks = with_ecn & (bit<1>)(seen.ecn != 0);
        codel.apply(0, seen.now_ns - seen.sojourn_ns + seen.wait_ns, seen.wait_ns, seen.depth_packets, seen.depth_bytes,
                    target, interval, maxpacket, marks, hit, verdict.value);
        verdict.mark = hit & marks;
        verdict.drop = hit & ~marks;
    }
}
