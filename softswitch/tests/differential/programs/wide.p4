/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Values of 128 and 256 bits: arithmetic, signed and saturated, shifts, slices, comparisons, registers, table keys.
 */
#include "begin.p4"

header wide_h {
    bit<128> a;
    bit<128> b;
    bit<256> c;
    bit<256> d;
}

struct headers_t {
    head_h head;
    wide_h wide;
}

struct metadata_t {
    bit<256> copy;
}

PARSER {
    state start {
        packet.extract(hdr.head);
        packet.extract(hdr.wide);
        transition select(hdr.wide.c) {
            0x8000000000000000000000000000000000000000000000000000000000000000 &&&
            0x8000000000000000000000000000000000000000000000000000000000000001: high;
            default: accept;
        }
    }
    state high {
        meta.copy = hdr.wide.c;
        transition accept;
    }
}

INGRESS {
    register<bit<256>>(4) wide_ones;
    register<bit<128>>(4) narrow_ones;
    bit<256> before;
    bit<128> narrow;
    action found(bit<128> value) {
        hdr.wide.a = hdr.wide.a ^ value;
    }
    table prefixes {
        key = {
            hdr.wide.b: lpm;
        }
        actions = {
            found;
            NoAction;
        }
        default_action = NoAction();
    }
    apply {
        std.egress_spec = 2;
        if (!hdr.wide.isValid()) {
            hdr.head.result = 0xbad;
        } else if (hdr.head.what == 0) {
            hdr.wide.a = hdr.wide.a + hdr.wide.b;
            hdr.wide.c = hdr.wide.c * hdr.wide.d;
        } else if (hdr.head.what == 1) {
            hdr.wide.a = hdr.wide.a |-| hdr.wide.b;
            hdr.wide.d = hdr.wide.d |+| hdr.wide.c;
        } else if (hdr.head.what == 2) {
            hdr.wide.c = hdr.wide.c << hdr.head.count;
            hdr.wide.d = hdr.wide.d >> hdr.head.count;
        } else if (hdr.head.what == 3) {
            hdr.wide.d = (bit<256>)((int<256>)hdr.wide.d >> hdr.head.count);
            hdr.wide.a = (bit<128>)((int<128>)hdr.wide.a |-| (int<128>)hdr.wide.b);
        } else if (hdr.head.what == 4) {
            hdr.wide.c = hdr.wide.a ++ hdr.wide.d[200:73];
            hdr.wide.d[130:120] = hdr.wide.b[10:0];
        } else if (hdr.head.what == 5) {
            if ((int<256>)hdr.wide.c < (int<256>)hdr.wide.d) {
                hdr.wide.c = ~hdr.wide.d;
            } else {
                hdr.wide.c = -hdr.wide.c;
            }
            hdr.wide.b = hdr.wide.a > hdr.wide.b ? hdr.wide.c[127:0] : hdr.wide.c[255:128];
        } else if (hdr.head.what == 6) {
            wide_ones.read(before, (bit<32>)hdr.head.count[1:0]);
            wide_ones.write((bit<32>)hdr.head.count[1:0], before + hdr.wide.c);
            narrow_ones.read(narrow, (bit<32>)hdr.head.count[3:2]);
            narrow_ones.write((bit<32>)hdr.head.count[3:2], narrow ^ hdr.wide.b);
            hdr.wide.d = before;
            hdr.wide.a = narrow;
        } else if (hdr.head.what == 7) {
            prefixes.apply();
        } else {
            hdr.wide.d = meta.copy | (bit<256>)hdr.wide.b & hdr.wide.d;
        }
    }
}

EGRESS {
    apply { }
}

#include "end.p4"
