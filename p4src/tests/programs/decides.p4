/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * A policy that decides by everything that both switches see alike, with state that both controls share. Its decisions
 * are no AQM: they are to be equal on BMv2 and on the soft switch (softswitch/tests/test_differential.py).
 */
register<bit<32>>(512) arrived;         // by port; written at arrival, read at departure
register<bit<32>>(512) departed;        // written at departure, read at arrival

counter(512, CounterType.packets) seen_packets;

/* A table with a condition on its hit, in both controls. */
control Mixed(in bit<32> number, out bit<32> mixed) {
    action twice() { mixed = number + number; }
    action thrice() { mixed = number + number + number; }
    table choose {
        key = { number: ternary; }
        actions = { twice; thrice; }
        const default_action = twice();
        const entries = {
            1 &&& 1 : twice();
            2 &&& 2 : thrice();
        }
    }
    apply {
        mixed = 0;
        if (choose.apply().hit) {
            mixed = mixed + 7;
        }
    }
}

control Arrival(in policy_input_t seen, inout policy_verdict_t verdict) {
    Mixed() mix;
    bit<32> count; bit<32> gone; bit<32> mark_mask; bit<32> drop_mask; bit<32> mixed; bit<16> hashed;
    action set(bit<32> mark_every, bit<32> drop_every) { mark_mask = mark_every; drop_mask = drop_every; }
    table parameters { actions = { set; } default_action = set(3, 15); }
    apply {
        parameters.apply();
        departed.read(gone, (bit<32>)seen.port);
        arrived.read(count, (bit<32>)seen.port);
        arrived.write((bit<32>)seen.port, count + 1);
        verdict.mark = (bit<1>)((count & mark_mask) == 1);
        verdict.drop = (bit<1>)(((seen.depth_packets ^ seen.depth_bytes ^ (bit<32>)seen.packet_bytes) & drop_mask) == 5);
        seen_packets.count((bit<32>)seen.port);
        mix.apply(count, mixed);
        hash(hashed, HashAlgorithm.crc16, 16w0, { seen.depth_packets, seen.packet_bytes, count }, 32w65536);
        verdict.value = count ^ (gone << 8) ^ seen.depth_packets ^ (seen.depth_bytes << 4)
            ^ mixed ^ ((bit<32>)hashed << 12) ^ ((bit<32>)seen.ecn << 30) ^ ((bit<32>)seen.full << 29) ^ (bit<32>)seen.packet_bytes;
    }
}

control Departure(in policy_input_t seen, inout policy_verdict_t verdict) {
    Mixed() mix;
    bit<32> count; bit<32> gone; bit<32> mask; bit<32> mixed;
    action set(bit<32> drop_every) { mask = drop_every; }
    table parameters { actions = { set; } default_action = set(15); }
    apply {
        parameters.apply();
        arrived.read(count, (bit<32>)seen.port);
        departed.read(gone, (bit<32>)seen.port);
        departed.write((bit<32>)seen.port, gone + 1);
        verdict.mark = (bit<1>)(seen.ecn == 2 && (count & 1) == 1);
        verdict.drop = (bit<1>)(((count + gone + seen.depth_packets) & mask) == 7);
        mix.apply(count ^ seen.depth_bytes, mixed);
        switch (mixed[1:0]) {
            0: { mixed = mixed + 1; }
            1: { mixed = mixed ^ seen.depth_packets; }
            default: { return; }
        }
        verdict.value = verdict.value + mixed + (seen.depth_bytes ++ (bit<16>)count)[31:0] + (bit<32>)seen.packet_bytes;
    }
}
