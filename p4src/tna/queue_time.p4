/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * When a packet came to its queue and how long it stayed, from the stamps of the traffic manager. These are low bits
 * of the clock of the pipelines (tm.cfg's timestamp_shift_bits has to be 0): 32 on Tofino 2, but 18 on Tofino 1, which
 * wrap every 262 us. What lies above them follows from the pipelines' own stamps, which are less than that away.
 */
#ifndef TNA_QUEUE_TIME_P4
#define TNA_QUEUE_TIME_P4

#include "names.p4"

/* ingress_ns: when the packet came to the ingress parser. egress_ns: when it came to the egress parser.
 * Every action is what one stage can do.
 */
control QueueTime(in egress_intrinsic_metadata_t eg_intr_md, in bit<48> ingress_ns, in bit<48> egress_ns,
                  out bit<48> enqueue_ns, out bit<32> sojourn_ns) {
    bit<32> low;
    bit<32> wrapped;

#if __TARGET_TOFINO__ == 1
    const bit<32> STAMP = 0x3ffff;
    bit<32> later;
    bit<32> whole;
    bit<32> excess;

    action begin() {
        later = (bit<32>)eg_intr_md.enq_tstamp - ingress_ns[31:0];
        whole = egress_ns[31:0] - ingress_ns[31:0];
    }

    action compare() {
        later = later & STAMP;
        excess = whole - (bit<32>)eg_intr_md.deq_timedelta;
    }

    /* The queue took the packet at the first moment after ingress_ns that ends in the stamp, and had it for the longest
     * time below that between the pipelines that ends in the other.
     */
    action extend() {
        low = ingress_ns[31:0] + later;
        excess = excess & STAMP;
    }

    action finish() {
        sojourn_ns = whole - excess;
    }
#else
    action take() {
        low = eg_intr_md.enq_tstamp;
        sojourn_ns = eg_intr_md.deq_timedelta;
    }
#endif

    action read() {
        wrapped = ingress_ns[31:0] |-| low;
        enqueue_ns = ingress_ns[47:32] ++ low;
    }

    /* The lower half of the clock went through 0 on the way from the ingress parser to the queue. */
    action carry() {
        enqueue_ns[47:32] = ingress_ns[47:32] + 1;
    }

    apply {
#if __TARGET_TOFINO__ == 1
        begin();
        compare();
        extend();
        finish();
#else
        take();
#endif
        read();
        if (wrapped != 0) {
            carry();
        }
    }
}

#endif
