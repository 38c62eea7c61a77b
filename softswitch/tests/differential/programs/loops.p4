/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * A parser that reads a list of options whose kind it looks ahead to, skips some, and counts the bytes that are left.
 */
#include "begin.p4"

header short_h {
    bit<8> kind;
    bit<8> value;
}

header long_h {
    bit<8> kind;
    bit<8> code;
    bit<32> value;
}

struct headers_t {
    head_h head;
    short_h[3] shorts;
    long_h[3] longs;
}

struct metadata_t {
    bit<8> left;
    bit<32> sum;
    bit<16> ahead;
}

PARSER {
    state start {
        packet.extract(hdr.head);
        meta.left = hdr.head.count;
        transition next;
    }
    state next {
        meta.left = meta.left - 1;
        transition select(meta.left, packet.lookahead<bit<16>>()) {
            (0, _): accept;
            (_, 0x0000 &&& 0xf000): skip;
            (_, 0x1000 &&& 0xf000): short_one;
            (_, 0x2000 .. 0x7fff): long_one;
            (_, 0x8000 &&& 0x8001): skip_many;
            default: accept;
        }
    }
    state skip {
        meta.ahead = packet.lookahead<bit<16>>();
        packet.advance(8);
        transition next;
    }
    state skip_many {
        packet.advance((bit<32>)(hdr.head.what & 3) << 3);
        meta.sum = meta.sum + 0x1000000;
        transition next;
    }
    state short_one {
        packet.extract(hdr.shorts.next);
        meta.sum = meta.sum + (bit<32>)hdr.shorts.last.value;
        transition next;
    }
    state long_one {
        packet.extract(hdr.longs.next);
        meta.sum = meta.sum ^ hdr.longs.last.value;
        transition next;
    }
}

INGRESS {
    apply {
        std.egress_spec = 3;
        hdr.head.result = meta.sum;
        hdr.head.number = meta.ahead + (bit<16>)meta.left;
        if (std.parser_error == error.StackOutOfBounds) {
            hdr.head.what = 0xe1;
        } else if (std.parser_error == error.NoMatch) {
            hdr.head.what = 0xe2;
        } else if (std.parser_error == error.PacketTooShort) {
            hdr.head.what = 0xe3;
        }
    }
}

EGRESS {
    apply { }
}

#include "end.p4"
