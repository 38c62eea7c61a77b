/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Enqueue and sojourn time from the traffic manager's stamps: the low 32 bits (Tofino 1: 18, 262 us) of the pipelines'
 * clock, if timestamp_shift_bits in tm.cfg is 0. The parsers' 48-bit stamps supply the higher bits. A packet must spend
 * less than 4.2 s between both parsers, on Tofino 1 with less than 262 us of this time outside the queue.
 */
#ifndef TNA_QUEUE_TIME_P4
#define TNA_QUEUE_TIME_P4

#include "names.p4"

/* ingress_ns, egress_ns: when the packet came to the ingress and to the egress parser.
 * Each action fits into one match-action stage.
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

    /* The enqueue time is the first instant from ingress_ns on whose low 18 bits equal enq_tstamp. The sojourn time is
     * the longest time, at most egress_ns - ingress_ns, whose low 18 bits equal deq_timedelta.
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

    /* The low 32 bits of the clock wrapped around between the ingress parser and the queue. */
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
