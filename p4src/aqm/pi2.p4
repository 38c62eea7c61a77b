/* SPDX-License-Identifier: MIT
 * PI2 in one queue (De Schepper et al. 2016; the law of RFC 9332, figure 6): the controller's probability p' is squared for
 * Classic packets, and times k for packets whose ECN field has a bit of ecn_mask (1: ECT(1) and CE, 3: any that is
 * ECN-capable). The postcard's value is p', times 2^32. Of one watched port.
 *
 * No timer: see laws/pi.p4; updates are made at arrivals. p' has 32 bits behind the point; squaring it is two random numbers
 * below p'.
 */
#include "laws/pi.p4"

register<bit<48>>(1) last_delay_ns;
register<bit<64>>(1) base_prob;         // p', times 2^32

control Arrival(in policy_input_t seen, inout policy_verdict_t verdict) {
    Pi() pi;
    Timer() timer;
    bit<32> target; bit<48> t_update; bit<32> alpha; bit<32> beta; bit<64> coupling; bit<2> mask; bit<64> up; bit<64> down;
    bit<48> now_delay; bit<48> old; bit<64> prob; bit<16> updates; bit<32> dice; bit<32> other;
    action set(bit<32> target_ns, bit<48> t_update_ns, bit<32> alpha_mhz, bit<32> beta_mhz, bit<8> k, bit<2> ecn_mask) {
        target = target_ns; t_update = t_update_ns; alpha = alpha_mhz; beta = beta_mhz; coupling = (bit<64>)k;
        mask = ecn_mask;
    }
    table parameters { actions = { set; } default_action = set(15000000, 16000000, 160, 3200, 2, 1); }
    apply {
        parameters.apply();
        delay_ns.read(now_delay, 0); last_delay_ns.read(old, 0); base_prob.read(prob, 0);
        timer.apply(seen.now_ns, t_update, updates);
        if (updates != 0) {
            pi.apply(updates, now_delay, old, target, alpha, beta, up, down);
            prob = (prob + up) |-| down;
            if (prob > 0xffffffff) { prob = 0xffffffff; }
            old = now_delay;
            base_prob.write(0, prob);
            last_delay_ns.write(0, old);
        }
        random(dice, 0, 0xffffffff);
        random(other, 0, 0xffffffff);
        if (seen.ecn & mask != 0) {
            verdict.mark = (bit<1>)((bit<64>)dice < coupling * prob);
        } else {
            verdict.mark = (bit<1>)((bit<64>)dice < prob && (bit<64>)other < prob);
        }
        verdict.value = (bit<32>)prob;
    }
}

control Departure(in policy_input_t seen, inout policy_verdict_t verdict) {
    Delay() delay;
    apply { delay.apply(seen); }
}
