/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Features of a parser: fields that are not byte-aligned, masks, keys of many fields, verify, lookahead, advance. The output is a
 * report of the parser, then the extracted headers in the deparser's order, then the rest of the packet.
 */
#include "begin.p4"

error { OddTag }

header report_h {
    bit<32> parser_error;
    bit<8> valid;
    bit<8> seen;
}

header bits_h {
    bit<1> one;
    bit<2> two;
    bit<5> five;
    bit<12> twelve;
    bit<4> four;
    bit<7> seven;
    bit<33> many;
    bit<60> more;
    bit<4> last;
}

header wide_h {
    bit<128> address;
    bit<120> nearly;
    bit<8> rest;
    bit<65> beyond;
    bit<63> bound;
    bit<72> nine;
    bit<24> three;
    bit<40> forty;
    bit<56> fifty_six;
}

header tag_h {
    bit<3> pcp;
    bit<1> dei;
    bit<12> vid;
    bit<16> ether_type;
}

struct headers_t {
    report_h report;
    ethernet_h ethernet;
    tag_h tag;
    bits_h bits;
    wide_h wide;
}

struct metadata_t {
    bit<8> seen;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            0x8100: parse_tag;
            0x1000 &&& 0xff00: parse_bits;
            0x2000 &&& 0xf000: parse_wide;
            0x3000: peek;
            0x4000: skip;
            0x5000: skip_by_length;
            default: accept;
        }
    }
    state parse_tag {
        packet.extract(hdr.tag);
        verify(hdr.tag.vid != 0xfff, error.OddTag);
        transition select(hdr.tag.pcp, hdr.tag.vid, hdr.tag.ether_type) {
            (1, 0x100 &&& 0xf00, 0x1000): parse_bits;
            (_, 5, 0x2000): parse_wide;
            (3, _, _): parse_bits;
            default: accept;
        }
    }
    state parse_bits {
        packet.extract(hdr.bits);
        transition select(hdr.bits.many) {
            0x1ffffffff: parse_wide;
            _: accept;
        }
    }
    state parse_wide {
        packet.extract(hdr.wide);
        transition select(hdr.wide.address) {
            0x20010db8000000000000000000000000 &&& 0xffffffff000000000000000000000000: parse_bits_2;
            default: accept;
        }
    }
    state parse_bits_2 {
        packet.extract(hdr.bits);
        transition accept;
    }
    state peek {
        meta.seen = packet.lookahead<bit<8>>();
        transition select(packet.lookahead<bit<16>>()) {
            0x0102: parse_bits;
            default: accept;
        }
    }
    state skip {
        packet.advance(32);
        transition parse_bits;
    }
    state skip_by_length {
        packet.advance((bit<32>)packet.lookahead<bit<8>>());
        transition parse_bits;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        hdr.report.setValid();
        if (std.parser_error == error.NoError) {
            hdr.report.parser_error = 0;
        } else if (std.parser_error == error.PacketTooShort) {
            hdr.report.parser_error = 1;
        } else if (std.parser_error == error.OddTag) {
            hdr.report.parser_error = 2;
        } else if (std.parser_error == error.ParserInvalidArgument) {
            hdr.report.parser_error = 3;
        } else {
            hdr.report.parser_error = 4;
        }
        hdr.report.seen = meta.seen;
        hdr.report.valid = 0;
        if (hdr.ethernet.isValid()) {
            hdr.report.valid = hdr.report.valid | 1;
        }
        if (hdr.tag.isValid()) {
            hdr.report.valid = hdr.report.valid | 2;
        }
        if (hdr.bits.isValid()) {
            hdr.report.valid = hdr.report.valid | 4;
        }
        if (hdr.wide.isValid()) {
            hdr.report.valid = hdr.report.valid | 8;
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
        packet.emit(hdr.report);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.tag);
        packet.emit(hdr.bits);
        packet.emit(hdr.wide);
    }
}

V1Switch(P(), Verify(), I(), E(), Update(), D()) main;
