/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Headers of a length that the packet gives: read, copied, hashed, removed, counted in the packet's length.
 */
#include "begin.p4"

header option_h {
    bit<8> kind;
    bit<8> words;
    varbit<320> data;
}

header tail_h {
    bit<16> mark;
}

struct headers_t {
    head_h head;
    option_h option;
    option_h copy;
    tail_h tail;
}

struct metadata_t {
}

PARSER {
    state start {
        packet.extract(hdr.head);
        transition select(hdr.head.count) {
            0: tail;
            default: option;
        }
    }
    state option {
        packet.extract(hdr.option, (bit<32>)hdr.head.count * 32 - 24);
        transition tail;
    }
    state tail {
        packet.extract(hdr.tail);
        transition accept;
    }
}

INGRESS {
    apply {
        std.egress_spec = 2;
        if (std.parser_error == error.HeaderTooShort) {
            hdr.head.number = 1;
        } else if (std.parser_error == error.PacketTooShort) {
            hdr.head.number = 2;
        }
        if (hdr.option.isValid()) {
            if (hdr.head.what == 1) {
                hdr.option.setInvalid();
            } else if (hdr.head.what == 2) {
                hdr.copy = hdr.option;
                hdr.copy.kind = 0x99;
            } else if (hdr.head.what == 3) {
                hash(hdr.head.result, HashAlgorithm.crc32, 32w0, { hdr.option.kind, hdr.option.data, hdr.head.number },
                     64w0x100000000);
            } else if (hdr.head.what == 4) {
                hdr.copy = hdr.option;
                if (hdr.copy == hdr.option) {
                    hdr.option.setInvalid();
                }
            }
        }
    }
}

EGRESS {
    apply {
        hdr.head.number = hdr.head.number + (bit<16>)std.packet_length;
    }
}

#include "end.p4"
