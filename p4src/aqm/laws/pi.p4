/* SPDX-License-Identifier: MIT
 * The proportional-integral controller of PIE (RFC 8033, section 4.2) and PI2 (RFC 9332, figure 6): what an update adds to
 * the probability, alpha * (delay - target) + beta * (delay - last delay).
 *
 * Probabilities have 32 bits behind the point. alpha and beta are given in 1/1000 Hz, delays in ns, at most 2.1 s: a
 * product times 2^32 / 10^12 is their share of 2^32 (1152922 / 2^28, exact to 4e-7). A sum below 0 is in `down`.
 *
 * Timer stands for the RFCs' periodic timer, which v1model lacks: a packet that finds an update due makes it, and updates
 * that several periods without packets have missed follow with the next packets, one each. One that was due before a
 * packet last found the queue empty is made with the delay 0. Who finds it empty a second after an update was due begins
 * anew, with probability 0. Periodic updates would have brought PIE's 0.4 to 0.05 by then, p' of PI2 from 0.3 to 0.1.
 */
#ifndef AQM_PI_P4
#define AQM_PI_P4

control Pi(in bit<48> delay_ns, in bit<48> last_delay_ns, in bit<32> target_ns, in bit<32> alpha_mhz, in bit<32> beta_mhz,
           out bit<64> up, out bit<64> down) {
    bit<64> delay; bit<64> last; bit<64> target;
    apply {
        delay = (bit<64>)delay_ns; last = (bit<64>)last_delay_ns; target = (bit<64>)target_ns;
        up = (bit<64>)alpha_mhz * (delay |-| target) + (bit<64>)beta_mhz * (delay |-| last);
        down = (bit<64>)alpha_mhz * (target |-| delay) + (bit<64>)beta_mhz * (last |-| delay);
        delay = up;
        up = ((up |-| down) * 1152922) >> 28;
        down = ((down |-| delay) * 1152922) >> 28;
    }
}

register<bit<48>>(1) update_ns;         // when the next update is due
register<bit<48>>(1) empty_ns;          // when a packet last found the queue empty

control Timer(in bit<48> now_ns, in bit<48> t_update_ns, in bit<1> is_empty,
              out bit<1> begins, out bit<1> is_due, out bit<1> was_empty) {
    bit<48> due; bit<48> empty;
    apply {
        update_ns.read(due, 0); empty_ns.read(empty, 0);
        if (is_empty == 1) { empty = now_ns; }
        begins = (bit<1>)(due == 0 || (is_empty == 1 && now_ns >= due + 1000000000));
        is_due = (bit<1>)(now_ns >= due);
        was_empty = (bit<1>)(due <= empty);
        if (begins == 1) {
            due = now_ns + t_update_ns;
        } else if (is_due == 1) {
            due = due + t_update_ns;
        }
        update_ns.write(0, due);
        empty_ns.write(0, empty);
    }
}

#endif
