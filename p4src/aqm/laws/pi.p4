/* SPDX-License-Identifier: MIT
 * The proportional-integral controller of PIE (RFC 8033, section 4.2) and PI2 (RFC 9332, figure 6): what an update adds to
 * the probability, alpha * (delay - target) + beta * (delay - last delay).
 *
 * Probabilities have 32 bits behind the point. alpha and beta are given in 1/1000 Hz, delays in ns, at most 2.1 s: a
 * product times 2^32 / 10^12 is their share of 2^32 (1152922 / 2^28, exact to 4e-7). A sum below 0 is in `down`.
 *
 * Timer stands for the RFCs' periodic timer, which v1model lacks: a packet makes all updates that fell due before it, at
 * most 1023, as one step. They have one delay: that of the packet that left last, 0 if it left nothing behind (of DualPI2,
 * if a packet of C leaves: its own). So all but the first add alpha * (delay - target) only, which is a multiplication.
 */
#ifndef AQM_PI_P4
#define AQM_PI_P4

control Pi(in bit<16> updates, in bit<48> delay_ns, in bit<48> last_delay_ns, in bit<32> target_ns, in bit<32> alpha_mhz,
           in bit<32> beta_mhz, out bit<64> up, out bit<64> down) {
    bit<64> delay; bit<64> last; bit<64> target; bit<64> alpha;
    apply {
        delay = (bit<64>)delay_ns; last = (bit<64>)last_delay_ns; target = (bit<64>)target_ns;
        alpha = (bit<64>)updates * (bit<64>)alpha_mhz;
        up = alpha * (delay |-| target) + (bit<64>)beta_mhz * (delay |-| last);
        down = alpha * (target |-| delay) + (bit<64>)beta_mhz * (last |-| delay);
        delay = up;
        up = (((up |-| down) >> 8) * 1152922) >> 20;
        down = (((down |-| delay) >> 8) * 1152922) >> 20;
    }
}

register<bit<48>>(1) delay_ns;          // of the packet that left last, 0 if it left none behind; written at departure

control Delay(in policy_input_t seen) {
    bit<48> delay;
    apply {
        delay = seen.wait_ns;
        if (delay > 0x7fffffff) { delay = 0x7fffffff; }
        if (seen.depth_packets == 0) { delay = 0; }
        delay_ns.write(0, delay);
    }
}

register<bit<48>>(1) updated_ns;        // the updates until then are made

control Timer(in bit<48> now_ns, in bit<48> t_update_ns, out bit<16> updates) {
    bit<48> since;
    apply {
        updated_ns.read(since, 0);
        since = now_ns - since;                             // modulo 2^48: right when the clock has wrapped, too
        updates = 0;
        if (since >= t_update_ns && since < 0xffff00000000) {   // beyond: now is before the last update
            if (since >= t_update_ns << 10) { updates = 1023; since = 0; }
            if (since >= t_update_ns << 9) { updates = updates + 512; since = since - (t_update_ns << 9); }
            if (since >= t_update_ns << 8) { updates = updates + 256; since = since - (t_update_ns << 8); }
            if (since >= t_update_ns << 7) { updates = updates + 128; since = since - (t_update_ns << 7); }
            if (since >= t_update_ns << 6) { updates = updates + 64; since = since - (t_update_ns << 6); }
            if (since >= t_update_ns << 5) { updates = updates + 32; since = since - (t_update_ns << 5); }
            if (since >= t_update_ns << 4) { updates = updates + 16; since = since - (t_update_ns << 4); }
            if (since >= t_update_ns << 3) { updates = updates + 8; since = since - (t_update_ns << 3); }
            if (since >= t_update_ns << 2) { updates = updates + 4; since = since - (t_update_ns << 2); }
            if (since >= t_update_ns << 1) { updates = updates + 2; since = since - (t_update_ns << 1); }
            if (since >= t_update_ns) { updates = updates + 1; since = since - t_update_ns; }
            updated_ns.write(0, now_ns - since);
        }
    }
}

#endif
