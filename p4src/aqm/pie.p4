/* SPDX-License-Identifier: MIT
 * PIE (RFC 8033): drops arrivals with a probability that a controller of the delay updates. ECN-capable packets are marked
 * while the probability is at most 10 % (section 5.1). The postcard's value is the probability, times 2^32. Of one port.
 *
 * No timer: see laws/pi.p4; updates are made at arrivals. The law is not linear: of several updates in an idle time, half
 * of the decay comes before the law's step and half behind it, as (1 - 330/65536)^2 each (to the fourth, 0.98).
 * The delay is that of the packet that left last (section 4.2 allows timestamps), 0 if it left none behind. Probabilities
 * have 32 bits behind the point; limits of 0.000001, 0.00001, ... are rounded to such fractions.
 */
#include "laws/pi.p4"

register<bit<48>>(1) last_delay_ns;     // qdelay_old
register<bit<64>>(1) drop_prob;         // times 2^32
register<bit<64>>(1) accu_prob;         // section 5.4, likewise
register<bit<48>>(1) burst_ns;          // burst_allowance

control Arrival(in policy_input_t seen, inout policy_verdict_t verdict) {
    Pi() pi;
    Timer() timer;
    bit<32> ref; bit<48> t_update; bit<48> max_burst; bit<32> mean; bit<32> alpha; bit<32> beta; bit<64> up; bit<64> down;
    bit<48> now_delay; bit<48> old; bit<64> prob; bit<64> accu; bit<48> burst; bit<32> dice; bit<8> scale;
    bit<16> updates; bit<64> many; bit<64> idle;
    action set(bit<32> qdelay_ref_ns, bit<48> t_update_ns, bit<48> max_burst_ns, bit<32> mean_pktsize_bytes,
               bit<32> alpha_mhz, bit<32> beta_mhz) {
        ref = qdelay_ref_ns; t_update = t_update_ns; max_burst = max_burst_ns; mean = mean_pktsize_bytes;
        alpha = alpha_mhz; beta = beta_mhz;
    }
    table parameters { actions = { set; } default_action = set(15000000, 15000000, 150000000, 1514, 125, 1250); }
    apply {
        parameters.apply();
        delay_ns.read(now_delay, 0); last_delay_ns.read(old, 0); drop_prob.read(prob, 0); accu_prob.read(accu, 0);
        burst_ns.read(burst, 0);
        timer.apply(seen.now_ns, t_update, updates);
        if (updates != 0) {
            many = (bit<64>)updates;
            idle = 0;                                           // updates that find both delays 0
            if (now_delay == 0) { idle = many - (bit<64>)(bit<1>)(old != 0); }
            idle = idle * 330;
            prob = prob |-| ((prob * idle) >> 16);
            prob = prob |-| ((prob * idle) >> 16);
            pi.apply(updates, now_delay, old, ref, alpha, beta, up, down);
            if (prob < 4295) { scale = 11; }                    // 0.000001
            else if (prob < 42950) { scale = 9; }
            else if (prob < 429497) { scale = 7; }
            else if (prob < 4294967) { scale = 5; }
            else if (prob < 42949673) { scale = 3; }
            else if (prob < 429496730) { scale = 1; }
            else { scale = 0; }
            up = up >> scale;
            if (prob >= 429496730 && up > many * 85899346) { up = many * 85899346; }    // 2 % from 10 % on (section 5.5)
            prob = (prob + up) |-| (down >> scale);
            if (prob > 0xffffffff) { prob = 0xffffffff; }
            prob = prob |-| ((prob * idle) >> 16);
            prob = prob |-| ((prob * idle) >> 16);
            if (prob == 0 && now_delay < (bit<48>)ref >> 1 && (old < (bit<48>)ref >> 1 || updates > 1)) {
                burst = max_burst;
            } else {
                burst = burst |-| ((bit<48>)updates * t_update);
            }
            old = now_delay;
            drop_prob.write(0, prob);
            last_delay_ns.write(0, old);
            burst_ns.write(0, burst);
        }
        random(dice, 0, 0xffffffff);
        if (burst == 0 && (old >= (bit<48>)ref >> 1 || prob >= 858993459) && seen.depth_bytes > mean << 1) {
            accu = accu + prob;
            if (prob == 0) { accu = 0; }
            if (accu >= 3650722202 && (accu >= 36507222016 || (bit<64>)dice < prob)) {      // 0.85, 8.5
                accu = 0;
                if (prob <= 429496730) { verdict.mark = 1; } else { verdict.drop = 1; }
            }
        }
        accu_prob.write(0, accu);
        verdict.value = (bit<32>)prob;
    }
}

control Departure(in policy_input_t seen, inout policy_verdict_t verdict) {
    Delay() delay;
    apply { delay.apply(seen); }
}
