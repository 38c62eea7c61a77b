/* SPDX-License-Identifier: MIT
 * DualPI2 (RFC 9332, appendix A): queue 1 (L) takes packets whose ECN field has a bit of ecn_mask (1: ECT(1) and CE, 3: any
 * that is ECN-capable), queue 0 (C) all others. One controller of C's delay makes p'; C drops or marks with p'^2, L marks
 * with the larger of k p' and a ramp of its own delay. All is decided at departure, as in the RFC. The postcard's value
 * is p', times 2^32. Of one watched port.
 *
 * Departures from the RFC: the scheduler is weighted round robin, 1:15 (section 4.2.2 allows it). No timer: see laws/pi.p4;
 * updates are made at departures. C's delay is that of its packet that left last, 0 if it left none behind. Random numbers
 * stand for the RFC's recur(); a ramp or square is compared by multiplication. p' is at most 1/k: then the link is
 * overloaded, L drops with p'^2 what it would mark, and C marks nothing (appendix A.2).
 */
#include "laws/pi.p4"

register<bit<32>>(2) came_packets;      // of each queue, modulo 2^32; written at arrival
register<bit<32>>(2) left_packets;      // all others are written at departure; delay_ns of laws/pi.p4 is C's
register<bit<48>>(1) last_delay_ns;     // at the last update
register<bit<64>>(1) base_prob;         // p', times 2^32

@scheduler("drr", 2, 1514, 22710)
control Arrival(in policy_input_t seen, inout policy_verdict_t verdict) {
    bit<2> mask; bit<32> count;
    action set(bit<2> ecn_mask) { mask = ecn_mask; }
    table parameters { actions = { set; } default_action = set(1); }
    apply {
        parameters.apply();
        if (seen.ecn & mask != 0) { verdict.queue = 1; }
        if (seen.full == 0) {
            came_packets.read(count, (bit<32>)verdict.queue);
            came_packets.write((bit<32>)verdict.queue, count + 1);
        }
    }
}

control Departure(in policy_input_t seen, inout policy_verdict_t verdict) {
    Pi() pi;
    Timer() timer;
    bit<32> target; bit<48> t_update; bit<32> alpha; bit<32> beta; bit<64> coupling; bit<64> most; bit<48> ramp_from;
    bit<48> ramp; bit<64> up; bit<64> down; bit<48> now_ns; bit<48> delay; bit<48> old; bit<64> prob;
    bit<32> came; bit<32> left; bit<32> dice; bit<32> other; bit<1> squared; bit<1> native; bit<48> wait; bit<16> updates;
    action set(bit<32> target_ns, bit<48> t_update_ns, bit<32> alpha_mhz, bit<32> beta_mhz, bit<8> k, bit<32> p_max,
               bit<48> min_th_ns, bit<32> range_ns) {
        target = target_ns; t_update = t_update_ns; alpha = alpha_mhz; beta = beta_mhz; coupling = (bit<64>)k;
        most = (bit<64>)p_max; ramp_from = min_th_ns; ramp = (bit<48>)range_ns;
    }
    table parameters {
        actions = { set; }
        default_action = set(15000000, 16000000, 160, 3200, 2, 0x80000000, 800000, 400000);     // p_max: 1/k
    }
    apply {
        parameters.apply();
        delay_ns.read(delay, 0); last_delay_ns.read(old, 0); base_prob.read(prob, 0);
        left_packets.read(left, (bit<32>)verdict.queue);
        left = left + 1;
        left_packets.write((bit<32>)verdict.queue, left);
        wait = seen.wait_ns;
        now_ns = seen.now_ns - seen.sojourn_ns + wait;
        if (wait > 0x7fffffff) { wait = 0x7fffffff; }
        if (verdict.queue == 0) { delay = wait; }
        timer.apply(now_ns, t_update, updates);
        if (updates != 0) {
            pi.apply(updates, delay, old, target, alpha, beta, up, down);
            prob = (prob + up) |-| down;
            if (prob > most) { prob = most; }
            old = delay;
            base_prob.write(0, prob);
            last_delay_ns.write(0, old);
        }
        came_packets.read(came, 0);
        left_packets.read(other, 0);
        if (came == other) { delay = 0; }
        delay_ns.write(0, delay);
        random(dice, 0, 0xffffffff);
        random(other, 0, 0xffffffff);
        squared = (bit<1>)((bit<64>)dice < prob && (bit<64>)other < prob);
        if (verdict.queue == 0) {
            verdict.mark = squared;
            verdict.drop = squared & (bit<1>)(prob >= most);
        } else {
            came_packets.read(came, 1);
            native = 0;
            if (came != left) {                 // Th_len: a packet stays behind
                native = (bit<1>)((bit<64>)dice * (bit<64>)ramp < (bit<64>)(wait |-| ramp_from) << 32);
            }
            verdict.mark = native | (bit<1>)((bit<64>)dice < coupling * prob);
            verdict.drop = squared & (bit<1>)(prob >= most);
        }
        verdict.value = (bit<32>)prob;
    }
}
