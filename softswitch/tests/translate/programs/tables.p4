/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Keys (exact, lpm, ternary, range), const entries, default actions, results of apply() (hit, action_run), direct counters,
 * exit. The program writes the number of the matching entry into the packet.
 */
#include "begin.p4"

header keys_h {
    bit<8> which;
    bit<32> a;
    bit<16> b;
    bit<8> c;
    bit<128> wide;
    bit<9> odd;
    bit<7> pad;
}

header result_h {
    bit<16> number;
    bit<8> flags;
    bit<128> wide;
}

header absent_h {
    bit<32> a;
}

struct headers_t {
    keys_h key;
    result_h result;
    absent_h absent;
}

struct metadata_t {
    bit<32> never_set;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.key);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    direct_counter(CounterType.packets_and_bytes) exact_hits;

    action found(bit<16> number) {
        hdr.result.number = number;
    }
    action found_wide(bit<9> number, bit<128> wide, bit<3> flags) {
        hdr.result.number = (bit<16>)number;
        hdr.result.wide = wide;
        hdr.result.flags = (bit<8>)flags;
    }
    action stop() {
        hdr.result.flags = 0xee;
        exit;
    }
    action missed() {
        hdr.result.flags = 0xff;
    }

    table exact_one {
        key = { hdr.key.a: exact; }
        actions = { found; found_wide; stop; @defaultonly missed; }
        default_action = missed();
        counters = exact_hits;
        size = 300;
    }
    table exact_two {
        key = { hdr.key.wide: exact; hdr.key.odd: exact @name("odd key"); }
        actions = { found; found_wide; }
        default_action = found(7);
        size = 64;
    }
    table lpm_one {
        key = { hdr.key.a: lpm; }
        actions = { found; missed; }
        const default_action = missed();
        size = 200;
    }
    table lpm_wide {
        key = { hdr.key.c: exact; hdr.key.wide: lpm; }
        actions = { found; missed; }
        default_action = missed();
        size = 200;
    }
    table ternary_two {
        key = { hdr.key.a: ternary; hdr.key.b: ternary; }
        actions = { found; missed; }
        default_action = missed();
        size = 100;
    }
    table mixture {
        key = { hdr.key.c: exact; hdr.key.a: lpm; hdr.key.b: range; hdr.key.wide: ternary; }
        actions = { found; missed; }
        default_action = missed();
        size = 50;
    }
    table fixed {
        key = { hdr.key.a: lpm; }
        actions = { found; missed; }
        const default_action = missed();
        const entries = {
            0x0a000000 &&& 0xff000000: found(8);
            0x0a010000 &&& 0xffff0000: found(16);
            0x0a010203: found(32);
        }
    }
    table fixed_ternary {
        key = { hdr.key.b: ternary; hdr.key.c: exact; }
        actions = { found; missed; }
        const default_action = missed();
        const entries = {
            (0x1200 &&& 0xff00, 1): found(1);
            (0x1234, 1): found(2);
            (_, 2): found(3);
        }
    }
    table of_absent {
        key = { hdr.absent.a: exact; hdr.absent.isValid(): exact; meta.never_set: exact; }
        actions = { found; missed; }
        default_action = missed();
    }
    table no_key {
        actions = { found; missed; }
        default_action = found(1);
    }

    apply {
        std.egress_spec = 1;
        hdr.result.setValid();
        if (hdr.key.which == 0) {
            exact_one.apply();
            hdr.result.flags = hdr.result.flags | 0x10;
        } else if (hdr.key.which == 1) {
            exact_two.apply();
        } else if (hdr.key.which == 2) {
            lpm_one.apply();
        } else if (hdr.key.which == 3) {
            lpm_wide.apply();
        } else if (hdr.key.which == 4) {
            ternary_two.apply();
        } else if (hdr.key.which == 5) {
            mixture.apply();
        } else if (hdr.key.which == 6) {
            if (fixed.apply().hit) {
                hdr.result.flags = 1;
            } else {
                hdr.result.flags = 2;
            }
        } else if (hdr.key.which == 7) {
            switch (fixed_ternary.apply().action_run) {
                found: { hdr.result.flags = 3; }
                missed: { hdr.result.flags = 4; }
            }
        } else if (hdr.key.which == 8) {
            of_absent.apply();
        } else {
            no_key.apply();
            if (hdr.key.which == 10) {
                return;
            }
            hdr.result.flags = 9;
        }
        hdr.result.wide = hdr.result.wide + 1;
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply { }
}

control Update(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.result);
    }
}

V1Switch(P(), Verify(), I(), E(), Update(), D()) main;
