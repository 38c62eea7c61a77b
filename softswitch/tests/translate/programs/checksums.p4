/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Hashes (csum16, crc16, crc32, xor16, identity), checksums verified and updated: over bits, absent headers, payload.
 */
#include "begin.p4"

header ipv4_h {
    bit<4> version;
    bit<4> ihl;
    bit<8> tos;
    bit<16> length;
    bit<16> id;
    bit<3> flags;
    bit<13> offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header udp_h {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}

header hashes_h {
    bit<16> csum;
    bit<16> crc16;
    bit<32> crc32;
    bit<16> xor16;
    bit<64> identity;
    bit<16> bits;
    bit<16> bounded;
    bit<8> checksum_error;
}

struct headers_t {
    hashes_h hashes;
    ipv4_h ipv4;
    udp_h udp;
}

struct metadata_t {
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol) {
            17: parse_udp;
            default: accept;
        }
    }
    state parse_udp {
        packet.extract(hdr.udp);
        transition accept;
    }
}

#define IPV4_FIELDS hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.length, hdr.ipv4.id, hdr.ipv4.flags, \
    hdr.ipv4.offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst
#define UDP_FIELDS hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, hdr.udp.length, hdr.udp.src_port, \
    hdr.udp.dst_port, hdr.udp.length

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.ihl == 5, { IPV4_FIELDS }, hdr.ipv4.checksum, HashAlgorithm.csum16);
        verify_checksum_with_payload(hdr.udp.checksum != 0, { UDP_FIELDS }, hdr.udp.checksum, HashAlgorithm.csum16);
    }
}

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    bit<16> out16;
    bit<32> out32;
    bit<64> out64;

    apply {
        std.egress_spec = 1;
        hdr.hashes.setValid();
        hdr.hashes.checksum_error = (bit<8>)std.checksum_error;
        hash(out16, HashAlgorithm.csum16, 16w0, { IPV4_FIELDS }, 32w0x10000);
        hdr.hashes.csum = out16;
        hash(out16, HashAlgorithm.crc16, 16w0, { IPV4_FIELDS }, 32w0x10000);
        hdr.hashes.crc16 = out16;
        hash(out32, HashAlgorithm.crc32, 32w0, { IPV4_FIELDS }, 64w0x100000000);
        hdr.hashes.crc32 = out32;
        hash(out16, HashAlgorithm.xor16, 16w0, { IPV4_FIELDS, hdr.udp.src_port, hdr.udp.checksum }, 32w0x10000);
        hdr.hashes.xor16 = out16;
        hash(out64, HashAlgorithm.identity, 64w0, { hdr.ipv4.src, hdr.ipv4.dst }, 64w0xffffffffffffffff);
        hdr.hashes.identity = out64;
        hash(out16, HashAlgorithm.crc16, 16w0, { hdr.ipv4.version, hdr.ipv4.flags, hdr.ipv4.offset, 3w5 }, 32w0x10000);
        hdr.hashes.bits = out16;
        hash(out16, HashAlgorithm.crc32, 16w100, { hdr.ipv4.src, hdr.ipv4.dst }, 32w10);
        hdr.hashes.bounded = out16;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply { }
}

control Update(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.ihl == 5, { IPV4_FIELDS }, hdr.ipv4.checksum, HashAlgorithm.csum16);
        update_checksum_with_payload(hdr.udp.isValid(), { UDP_FIELDS }, hdr.udp.checksum, HashAlgorithm.csum16);
    }
}

control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.hashes);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
    }
}

V1Switch(P(), Verify(), I(), E(), Update(), D()) main;
