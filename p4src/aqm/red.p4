/* SPDX-License-Identifier: MIT
 * RED (RFC 2309, section 3) with Floyd and Jacobson's averages and counts (1993), gentle (Floyd 2000): from max_th to twice
 * max_th the probability grows from max_p to 1. ECN-capable packets are marked up to 2 max_th, beyond it dropped. The
 * postcard's value is the average queue in packets, times 2^16. Of one watched port.
 *
 * Departures from the reals: w_q is 2^-w_q_shift (9: 0.00195). The average has 16 bits behind the point. The final
 * probability p_b / (1 - count * p_b) is never divided: both sides of random < p are multiplied. While the queue is
 * empty, the average halves each ln(2) / w_q packet times of packet_time; between, it decays in steps of 1/8 of that. The
 * queue has the packet on the link, so it is one packet longer than a queue behind the link.
 */
register<bit<48>>(1) idle_since_ns;     // written at departure; 0: packets are queued
register<bit<48>>(1) average;           // packets, times 2^16
register<bit<32>>(1) since_drop;        // packets since the last one that was dropped or marked

control Arrival(in policy_input_t seen, inout policy_verdict_t verdict) {
    bit<32> min_th; bit<32> max_th; bit<32> max_p; bit<8> shift; bit<32> packet_time; bit<48> avg; bit<48> q;
    bit<48> idle; bit<48> half; bit<32> count; bit<16> dice; bit<64> chance; bit<64> one;
    action set(bit<32> min_th_packets, bit<32> max_th_packets, bit<32> max_p_permille, bit<8> w_q_shift,
               bit<32> packet_time_ns) {
        min_th = min_th_packets; max_th = max_th_packets; max_p = max_p_permille; shift = w_q_shift;
        packet_time = packet_time_ns;
    }
    table parameters { actions = { set; } default_action = set(5, 15, 100, 9, 61520); }
    apply {
        parameters.apply();
        average.read(avg, 0); since_drop.read(count, 0); idle_since_ns.read(idle, 0);
        q = (bit<48>)seen.depth_packets << 16;
        if (seen.depth_packets == 0 && idle != 0) {
            idle = seen.now_ns - idle;
            half = ((bit<48>)packet_time << shift) - ((bit<48>)packet_time << shift >> 2)
                - ((bit<48>)packet_time << shift >> 4);                // 0.6875 of it: ln(2) is 0.693
            if (idle >= half << 5) { avg = 0; }
            if (idle >= half << 4) { avg = avg >> 16; idle = idle - (half << 4); }
            if (idle >= half << 3) { avg = avg >> 8; idle = idle - (half << 3); }
            if (idle >= half << 2) { avg = avg >> 4; idle = idle - (half << 2); }
            if (idle >= half << 1) { avg = avg >> 2; idle = idle - (half << 1); }
            if (idle >= half) { avg = avg >> 1; idle = idle - half; }
            if (idle >= half >> 1) { avg = (avg * 181) >> 8; idle = idle - (half >> 1); }
            if (idle >= half >> 2) { avg = (avg * 215) >> 8; idle = idle - (half >> 2); }
            if (idle >= half >> 3) { avg = (avg * 235) >> 8; }
        } else if (q >= avg) {
            avg = avg + ((q - avg) >> shift);
        } else {
            avg = avg - ((avg - q) >> shift);
        }
        average.write(0, avg);
        verdict.value = (bit<32>)avg;

        /* p_b is chance / one: 1000 (max_th - min_th) is the RFC's denominator. */
        one = 1000 * ((bit<64>)(max_th - min_th) << 16);
        chance = (bit<64>)max_p * (bit<64>)(avg - ((bit<48>)min_th << 16));
        if (avg >= (bit<48>)max_th << 16) {
            one = 1000 * ((bit<64>)max_th << 16);
            chance = (bit<64>)max_p * ((bit<64>)max_th << 16)
                + (bit<64>)(1000 - max_p) * (bit<64>)(avg - ((bit<48>)max_th << 16));
        }
        random(dice, 0, 65535);
        if (avg >= (bit<48>)max_th << 17) {
            verdict.drop = 1;
            count = 0;
        } else if (avg < (bit<48>)min_th << 16) {
            count = 0xffffffff;
        } else {
            count = count + 1;
            /* dice / 2^16 < chance / (one - count * chance) */
            if ((bit<64>)count * chance >= one || (bit<64>)dice * (one - (bit<64>)count * chance) < chance << 16) {
                verdict.mark = 1;
                count = 0;
            }
        }
        since_drop.write(0, count);
    }
}

control Departure(in policy_input_t seen, inout policy_verdict_t verdict) {
    apply {
        if (seen.depth_packets == 0) {
            idle_since_ns.write(0, seen.now_ns);
        } else {
            idle_since_ns.write(0, 0);
        }
    }
}
