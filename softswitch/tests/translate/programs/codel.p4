/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * CoDel (RFC 8289) as in programs for BMv2: in egress, with constants in simple_switch's us. A table has the interval
 * divided by the square root of the number of drops; from 32 drops on it uses the value for 32.
 */
#include "begin.p4"

const bit<32> TARGET_US = 5000;
const bit<32> INTERVAL_US = 100000;

struct headers_t {
}

struct metadata_t {
    bit<32> step_us;
}

register<bit<48>>(1) first_above;   // time at which the sojourn will have exceeded the target for an interval; 0: unset
register<bit<48>>(1) next_drop;
register<bit<32>>(1) drop_count;
register<bit<1>>(1) dropping;

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    bit<48> first_above_us;
    bit<48> next_drop_us;
    bit<32> count;
    bit<1> in_dropping;

    action wait(bit<32> step_us) {
        meta.step_us = step_us;
    }
    table control_law {
        key = { count: exact; }
        actions = { wait; }
        const default_action = wait(17678);
        const entries = {
            2: wait(70711); 3: wait(57735); 4: wait(50000); 5: wait(44721); 6: wait(40825);
            7: wait(37796); 8: wait(35355); 9: wait(33333); 10: wait(31623); 11: wait(30151);
            12: wait(28868); 13: wait(27735); 14: wait(26726); 15: wait(25820); 16: wait(25000);
            17: wait(24254); 18: wait(23570); 19: wait(22942); 20: wait(22361); 21: wait(21822);
            22: wait(21320); 23: wait(20851); 24: wait(20412); 25: wait(20000); 26: wait(19612);
            27: wait(19245); 28: wait(18898); 29: wait(18570); 30: wait(18257); 31: wait(17961);
        }
    }

    apply {
        first_above.read(first_above_us, 0);
        next_drop.read(next_drop_us, 0);
        drop_count.read(count, 0);
        dropping.read(in_dropping, 0);
        if (std.deq_timedelta < TARGET_US) {
            first_above.write(0, 0);
            dropping.write(0, 0);
        } else if (first_above_us == 0) {
            first_above.write(0, std.egress_global_timestamp + (bit<48>)INTERVAL_US);
        } else if (in_dropping == 0) {
            if (std.egress_global_timestamp >= first_above_us) {
                dropping.write(0, 1);
                drop_count.write(0, 1);
                next_drop.write(0, std.egress_global_timestamp + (bit<48>)INTERVAL_US);
                mark_to_drop(std);
            }
        } else if (std.egress_global_timestamp >= next_drop_us) {
            count = count + 1;
            control_law.apply();
            drop_count.write(0, count);
            next_drop.write(0, next_drop_us + (bit<48>)meta.step_us);
            mark_to_drop(std);
        }
    }
}

control Update(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control D(packet_out packet, in headers_t hdr) {
    apply { }
}

V1Switch(P(), Verify(), I(), E(), Update(), D()) main;
