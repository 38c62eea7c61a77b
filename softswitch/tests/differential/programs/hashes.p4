/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * All hash algorithms over fields of whole and of odd widths, CRCs with the user's parameters, checksums of a payload.
 */
#include "begin.p4"

header data_h {
    bit<3> a;
    bit<13> b;
    bit<32> c;
    bit<64> d;
    bit<16> checksum;
    bit<16> whole;
}

struct headers_t {
    head_h head;
    data_h data;
}

struct metadata_t {
    bit<1> wrong;
}

PARSER {
    state start {
        packet.extract(hdr.head);
        packet.extract(hdr.data);
        transition accept;
    }
}

#define CHECKSUMS
control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.data.isValid(), { hdr.data.a, hdr.data.b, hdr.data.c }, hdr.data.checksum, HashAlgorithm.csum16);
    }
}

control Update(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.data.isValid(), { hdr.data.a, hdr.data.b, hdr.data.d, 16w0x1234 }, hdr.data.checksum,
                        HashAlgorithm.csum16);
        update_checksum_with_payload(hdr.data.isValid() && hdr.head.what[0:0] == 1, { hdr.head.number, hdr.data.c },
                                     hdr.data.whole, HashAlgorithm.csum16);
    }
}

#define INPUT { hdr.data.a, hdr.data.b, hdr.data.c, hdr.head.number, hdr.data.d }

INGRESS {
    bit<32> long;
    bit<16> short;
    apply {
        std.egress_spec = 3;
        if (hdr.data.isValid()) {
            if (hdr.head.what == 0) {
                hash(hdr.head.result, HashAlgorithm.crc32, 32w7, INPUT, 32w1000);
            } else if (hdr.head.what == 1) {
                hash(hdr.head.result, HashAlgorithm.crc32_custom, 32w0, INPUT, 64w0x100000000);
            } else if (hdr.head.what == 2) {
                hash(short, HashAlgorithm.crc16, 16w0, INPUT, 32w0x10000);
                hdr.head.result = (bit<32>)short;
            } else if (hdr.head.what == 3) {
                hash(short, HashAlgorithm.crc16_custom, 16w0, INPUT, 32w0x10000);
                hdr.head.result = (bit<32>)short;
            } else if (hdr.head.what == 4) {
                hash(short, HashAlgorithm.csum16, 16w0, { hdr.data.c, hdr.head.number, hdr.data.d }, 32w0x10000);
                hdr.head.result = (bit<32>)short;
            } else if (hdr.head.what == 5) {
                hash(short, HashAlgorithm.xor16, 16w3, { hdr.data.c, hdr.head.number, hdr.data.d }, 32w60000);
                hdr.head.result = (bit<32>)short;
            } else {
                hash(long, HashAlgorithm.identity, 32w5, { hdr.data.c, hdr.head.number }, 64w0x100000000);
                hdr.head.result = long;
            }
        }
        hdr.head.count = (bit<8>)std.checksum_error;
    }
}

EGRESS {
    apply { }
}

#include "end.p4"
