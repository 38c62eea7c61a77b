/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * One operation of each kind. The results replace the operands; the test compares them with Python's integers.
 */
#include "begin.p4"

header operands_h {
    bit<8> a8;
    bit<8> b8;
    bit<16> a16;
    bit<16> b16;
    bit<32> a32;
    bit<32> b32;
    bit<48> a48;
    bit<48> b48;
    bit<64> a64;
    bit<64> b64;
    bit<128> a128;
    bit<128> b128;
    bit<13> a13;
    bit<3> b3;
    bit<8> shift;
    int<8> i8;
    int<8> j8;
    int<32> i32;
    int<32> j32;
    int<64> i64;
    int<64> j64;
}

header results_h {
    bit<8> add8;
    bit<16> sub16;
    bit<32> mul32;
    bit<48> add48;
    bit<64> mul64;
    bit<128> add128;
    bit<128> sub128;
    bit<128> mul128;
    bit<32> and32;
    bit<32> or32;
    bit<32> xor32;
    bit<32> not32;
    bit<128> not128;
    bit<16> neg16;
    bit<32> shl32;
    bit<32> shr32;
    bit<64> shl64;
    bit<64> shr64;
    bit<128> shl128;
    bit<128> shr128;
    bit<32> shl_const;
    bit<32> shr_const;
    bit<16> concat;
    bit<128> concat128;
    bit<24> mixed;
    bit<8> slice;
    bit<48> written_slice;
    bit<32> choose;
    bit<8> sat_add;
    bit<8> sat_sub;
    int<8> isat_add;
    int<8> isat_sub;
    int<8> iadd;
    int<32> isub;
    int<32> imul;
    int<32> ineg;
    int<32> ishr;
    int<64> iadd64;
    int<64> widen;
    bit<32> narrow;
    bit<16> chain;
    bit<1> lt;
    bit<1> le;
    bit<1> gt;
    bit<1> ge;
    bit<1> eq;
    bit<1> ne;
    bit<1> lt128;
    bit<1> ilt;
    bit<1> ige;
    bit<1> both;
    bit<1> either;
    bit<1> neither;
    bit<1> wrapped_lt;
    bit<1> minus_lt;
    bit<2> pad;
}

struct headers_t {
    operands_h in_;
    results_h out_;
}

struct metadata_t {
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.in_);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        hdr.out_.setValid();
        hdr.out_.add8 = hdr.in_.a8 + hdr.in_.b8;
        hdr.out_.sub16 = hdr.in_.a16 - hdr.in_.b16;
        hdr.out_.mul32 = hdr.in_.a32 * hdr.in_.b32;
        hdr.out_.add48 = hdr.in_.a48 + hdr.in_.b48;
        hdr.out_.mul64 = hdr.in_.a64 * hdr.in_.b64;
        hdr.out_.add128 = hdr.in_.a128 + hdr.in_.b128;
        hdr.out_.sub128 = hdr.in_.a128 - hdr.in_.b128;
        hdr.out_.mul128 = hdr.in_.a128 * hdr.in_.b128;
        hdr.out_.and32 = hdr.in_.a32 & hdr.in_.b32;
        hdr.out_.or32 = hdr.in_.a32 | hdr.in_.b32;
        hdr.out_.xor32 = hdr.in_.a32 ^ hdr.in_.b32;
        hdr.out_.not32 = ~hdr.in_.a32;
        hdr.out_.not128 = ~hdr.in_.a128;
        hdr.out_.neg16 = -hdr.in_.a16;
        hdr.out_.shl32 = hdr.in_.a32 << hdr.in_.shift;
        hdr.out_.shr32 = hdr.in_.a32 >> hdr.in_.shift;
        hdr.out_.shl64 = hdr.in_.a64 << hdr.in_.shift;
        hdr.out_.shr64 = hdr.in_.a64 >> hdr.in_.shift;
        hdr.out_.shl128 = hdr.in_.a128 << hdr.in_.shift;
        hdr.out_.shr128 = hdr.in_.a128 >> hdr.in_.shift;
        hdr.out_.shl_const = hdr.in_.a32 << 7;
        hdr.out_.shr_const = hdr.in_.a32 >> 7;
        hdr.out_.concat = hdr.in_.a13 ++ hdr.in_.b3;
        hdr.out_.concat128 = hdr.in_.a64 ++ hdr.in_.a48 ++ hdr.in_.b16;
        hdr.out_.mixed = (bit<24>)hdr.in_.a8 << 16 | (bit<24>)hdr.in_.b8 << 8 | (bit<24>)hdr.in_.b3;
        hdr.out_.slice = hdr.in_.a48[30:23];
        hdr.out_.written_slice = hdr.in_.a48;
        hdr.out_.written_slice[20:9] = hdr.in_.a13[12:1];
        hdr.out_.choose = hdr.in_.a8 < hdr.in_.b8 ? hdr.in_.a32 : hdr.in_.b32;
        hdr.out_.sat_add = hdr.in_.a8 |+| hdr.in_.b8;
        hdr.out_.sat_sub = hdr.in_.a8 |-| hdr.in_.b8;
        hdr.out_.isat_add = hdr.in_.i8 |+| hdr.in_.j8;
        hdr.out_.isat_sub = hdr.in_.i8 |-| hdr.in_.j8;
        hdr.out_.iadd = hdr.in_.i8 + hdr.in_.j8;
        hdr.out_.isub = hdr.in_.i32 - hdr.in_.j32;
        hdr.out_.imul = hdr.in_.i32 * hdr.in_.j32;
        hdr.out_.ineg = -hdr.in_.i32;
        hdr.out_.ishr = hdr.in_.i32 >> hdr.in_.shift;
        hdr.out_.iadd64 = hdr.in_.i64 + hdr.in_.j64;
        hdr.out_.widen = (int<64>)hdr.in_.i8;
        hdr.out_.narrow = (bit<32>)hdr.in_.a128;
        hdr.out_.chain = (hdr.in_.a16 + hdr.in_.b16 - 3) * 5 ^ (hdr.in_.a16 >> 3) + ~hdr.in_.b16;
        hdr.out_.lt = (bit<1>)(hdr.in_.a32 < hdr.in_.b32);
        hdr.out_.le = (bit<1>)(hdr.in_.a32 <= hdr.in_.b32);
        hdr.out_.gt = (bit<1>)(hdr.in_.a8 > hdr.in_.b8);
        hdr.out_.ge = (bit<1>)(hdr.in_.a8 >= hdr.in_.b8);
        hdr.out_.eq = (bit<1>)(hdr.in_.a8 == hdr.in_.b8);
        hdr.out_.ne = (bit<1>)(hdr.in_.a8 != hdr.in_.b8);
        hdr.out_.lt128 = (bit<1>)(hdr.in_.a128 < hdr.in_.b128);
        hdr.out_.ilt = (bit<1>)(hdr.in_.i8 < hdr.in_.j8);
        hdr.out_.ige = (bit<1>)(hdr.in_.i64 >= hdr.in_.j64);
        hdr.out_.both = (bit<1>)(hdr.in_.a8 < 100 && hdr.in_.b8 < 100);
        hdr.out_.either = (bit<1>)(hdr.in_.a8 < 100 || hdr.in_.b8 < 100);
        hdr.out_.neither = (bit<1>)(!(hdr.in_.a8 < 100 || hdr.in_.b8 < 100));
        hdr.out_.wrapped_lt = (bit<1>)(hdr.in_.a8 + hdr.in_.b8 < hdr.in_.a8);
        hdr.out_.minus_lt = (bit<1>)(hdr.in_.a64 - hdr.in_.b64 < hdr.in_.a64);
        hdr.out_.pad = 0;
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
        packet.emit(hdr.out_);
    }
}

V1Switch(P(), Verify(), I(), E(), Update(), D()) main;
