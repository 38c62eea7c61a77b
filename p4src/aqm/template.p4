/* SPDX-License-Identifier: MIT
 * A simple AQM: if every packet of the last interval waited longer than target, one arrival in 256 is marked, or dropped
 * if it is not ECN-capable. Its value is the shortest wait in ns. docs/your-aqm.md explains what a policy sees and may do. */
register<bit<48>>(1) least_ns;          // shortest wait of this interval
register<bit<48>>(1) end_ns;            // of this interval
register<bit<1>>(1) congested;          // written at departure, read at arrival

control Arrival(in policy_input_t seen, inout policy_verdict_t verdict) {
    bit<8> dice; bit<48> least;
    apply {
        random(dice, 0, 255);
        if (dice == 0) { congested.read(verdict.mark, 0); }
        least_ns.read(least, 0);
        verdict.value = (bit<32>)least;
    }
}
control Departure(in policy_input_t seen, inout policy_verdict_t verdict) {
    bit<48> least; bit<48> end; bit<48> target; bit<48> interval;
    action set(bit<48> target_ns, bit<48> interval_ns) { target = target_ns; interval = interval_ns; }
    table parameters { actions = { set; } default_action = set(2000000, 50000000); }
    apply {
        parameters.apply(); least_ns.read(least, 0); end_ns.read(end, 0);
        if (seen.now_ns >= end) {
            congested.write(0, (bit<1>)(least > target));
            end_ns.write(0, seen.now_ns + interval);
            least = seen.sojourn_ns;
        } else if (seen.sojourn_ns < least) { least = seen.sojourn_ns; }
        least_ns.write(0, least);
    }
}
