/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Valid P4 whose plain translation would make a C compiler warn: comparisons that are always true or always false,
 * constant conditions, shifts by the width or more, names of C's library, unused declarations.
 */
#include "begin.p4"

header numbers_h {
    bit<32> low;
    bit<32> high;
    bit<8> index;
    bit<8> way;
    int<8> i8;
    int<64> i64;
    int<128> i128;
    bit<64> b64;
    bit<128> b128;
    bit<1> one;
    bit<7> seven;
}

header results_h {
    bit<32> drawn;
    bit<32> all_bits;
    bit<32> from_zero;
    bit<32> fixed;
    bit<8> truths;
    bit<64> shifted;
    bit<8> went;
}

header unused_h {
    bit<8> field;
}

header empty_h {
}

struct headers_t {
    numbers_h numbers;
    results_h results;
    unused_h unused;
    empty_h empty;
}

struct unused_t {
    bit<8> a;
    bit<1> b;
}

struct metadata_t {
    unused_t unused;
    bit<8> count;
    bool flag;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.numbers);
        transition select(hdr.numbers.way) {
            default: next;
        }
    }
    state next {
        packet.extract(hdr.empty);
        transition select(hdr.numbers.one, hdr.numbers.seven) {
            (0, 0 .. 127): everything;
            (1, _): everything;
            (_, 0x7f &&& 0x00): never;
            default: reject;
        }
    }
    state everything {
        transition select(hdr.numbers.low) {
            0xffffffff: last;
            0 &&& 0: last;
            0: never;
        }
    }
    state never {
        transition accept;
    }
    state last {
        verify(hdr.numbers.low >= 0, error.NoMatch);
        verify(hdr.numbers.b64 <= 0xffffffffffffffff, error.NoMatch);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    register<bit<32>>(1) one_cell;
    register<bit<32>>(256) all_cells;
    register<bit<32>>(4) never_used;
    counter(1, CounterType.packets) one_counter;
    bit<32> unused_variable;

    action printf() {
        hdr.results.went = hdr.results.went | 1;
    }
    action exit_(bit<8> abs) {
        hdr.results.went = hdr.results.went | abs;
        exit;
    }
    action nothing() { }
    action unused_argument(bit<8> malloc) { }
    action never_called() {
        hdr.results.went = 99;
    }
    table no_key {
        actions = { nothing; printf; }
        default_action = nothing();
    }
    table no_actions {
        key = { hdr.numbers.way: exact; }
        actions = { }
    }
    table one_action {
        key = { hdr.numbers.one: exact; hdr.numbers.i8: exact; hdr.unused.isValid(): exact; }
        actions = { nothing; }
        const default_action = nothing();
    }
    table outer {
        key = { hdr.numbers.way: exact; }
        actions = { nothing; printf; unused_argument; }
        const default_action = nothing();
        const entries = {
            1: printf();
            2: unused_argument(3);
        }
    }
    table inner {
        key = { hdr.numbers.index: exact; }
        actions = { nothing; exit_; }
        default_action = nothing();
        const entries = {
            7: exit_(64);
        }
    }
    table second {
        key = { hdr.numbers.index: exact; }
        actions = { nothing; exit_; }
        default_action = exit_(32);
        const entries = {
            1: nothing();
        }
    }

    apply {
        std.egress_spec = 1;
        hdr.results.setValid();
        random(hdr.results.drawn, 0, hdr.numbers.high);
        random(hdr.results.all_bits, 0, 0xffffffff);
        random(hdr.results.from_zero, hdr.numbers.low, 0xffffffff);
        random(hdr.results.fixed, 5, 5);

        if ((bit<32>)std.ingress_port < 70000) { hdr.results.truths[0:0] = 1; }
        if (hdr.numbers.low >= 0) { hdr.results.truths[1:1] = 1; }
        if (hdr.numbers.low < 0) { hdr.results.truths[2:2] = 1; }
        if (hdr.numbers.b64 > 0xffffffffffffffff) { hdr.results.truths[2:2] = 1; }
        if (hdr.numbers.b128 <= 0xffffffffffffffffffffffffffffffff) { hdr.results.truths[3:3] = 1; }
        if (hdr.numbers.i8 >= -128 && hdr.numbers.i64 >= -0x8000000000000000) { hdr.results.truths[4:4] = 1; }
        if (hdr.numbers.i128 <= 0x7fffffffffffffffffffffffffffffff && hdr.numbers.i128 >= -0x80000000000000000000000000000000) {
            hdr.results.truths[5:5] = 1;
        }
        if (hdr.numbers.low == hdr.numbers.low && hdr.numbers.one <= 1) { hdr.results.truths[6:6] = 1; }
        if (hdr.numbers.low & 3 == 7 || hdr.numbers.one > 1 || std.checksum_error > 0 && std.checksum_error < 0) {
            hdr.results.truths[2:2] = 1;
        }
        if (true) { meta.count = 1; }
        if (false) { meta.count = 2; }
        if (hdr.numbers.way == 0) { } else { }
        if (hdr.numbers.way == 0) { meta.flag = true; } else { meta.flag = true; }
        if (meta.flag == true && meta.flag != false) { hdr.results.truths[7:7] = 1; }

        hdr.results.shifted = hdr.numbers.b64 << 64;
        hdr.results.shifted = hdr.results.shifted | hdr.numbers.b64 >> 200;
        hdr.results.shifted = hdr.results.shifted | (bit<64>)((bit<128>)hdr.numbers.b64 << 127 >> 127 >> 1);
        hdr.results.shifted = hdr.results.shifted | (bit<64>)(hdr.numbers.i64 >> 63 & 0);
        hdr.results.shifted = hdr.results.shifted + (hdr.numbers.b64 - hdr.numbers.b64) * 0;
        hdr.results.shifted = hdr.results.shifted | (bit<64>)(8w255 << 8);

        one_cell.write(0, hdr.numbers.low);
        one_cell.read(unused_variable, 0);
        one_cell.read(unused_variable, 4294967295);
        all_cells.write((bit<32>)hdr.numbers.index, 0xffffffff);
        one_counter.count(0);
        one_counter.count(1);

        no_key.apply();
        no_actions.apply();
        if (one_action.apply().hit) { } else { }
        switch (outer.apply().action_run) {
            nothing: {
                if (inner.apply().hit) { hdr.results.went = hdr.results.went | 16; }
            }
            printf: {
                switch (second.apply().action_run) {
                    nothing: { hdr.results.went = hdr.results.went | 8; }
                    exit_: { }
                }
            }
            default: { }
        }
        if (hdr.numbers.way == 200) {
            if (false) { return; }
            exit;
        }
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
        packet.emit(hdr.results);
        packet.emit(hdr.numbers);
    }
}

V1Switch(P(), Verify(), I(), E(), Update(), D()) main;
