/* SPDX-License-Identifier: MIT
 * The proportional-integral controller of PIE (RFC 8033, section 4.2) and PI2 (RFC 9332, figure 6): what an update adds to
 * the probability, alpha * (delay - target) + beta * (delay - last delay).
 *
 * Probabilities have 32 bits behind the point. alpha and beta are given in 1/1000 Hz, delays in ns, at most 2.1 s: a
 * product times 2^32 / 10^12 is their share of 2^32 (1152922 / 2^28, exact to 4e-7). A sum below 0 is in `down`.
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

#endif
