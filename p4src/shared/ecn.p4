/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * ECN: is a packet capable of it, and setting CE.
 */
#ifndef SHARED_ECN_P4
#define SHARED_ECN_P4

#include "headers.p4"
#include "metadata.p4"

/* Sets POSTCARD_ECT when the packet arrived ECN-capable (ECT(0), ECT(1) or CE). */
control ReadEcn(in headers_t hdr, inout metadata_t meta) {
    apply {
        if ((hdr.ipv4.isValid() && hdr.ipv4.ecn != ECN_NOT_ECT) ||
            (hdr.ipv6.isValid() && hdr.ipv6.ecn != ECN_NOT_ECT)) {
            meta.queue.flags = meta.queue.flags | (bit<8>)POSTCARD_ECT;
        }
    }
}

/* Sets CE, and POSTCARD_CE_MARKED unless the packet brought CE along.
 * The IPv4 checksum is updated by difference (RFC 1624, equation 3): options stay out of it, and what was wrong
 * before stays wrong. The word with the ECN bits grows by at most 2, so one carry can come out of the sum.
 */
control MarkCe(inout headers_t hdr, inout metadata_t meta) {
    apply {
        bit<2> before = ECN_CE;
        if (hdr.ipv4.isValid()) {
            before = hdr.ipv4.ecn;
            bit<32> sum = (bit<32>)(~hdr.ipv4.checksum) + (bit<32>)(ECN_CE - before);
            hdr.ipv4.checksum = ~((bit<16>)sum + (bit<16>)(sum >> 16));
            hdr.ipv4.ecn = ECN_CE;
        } else if (hdr.ipv6.isValid()) {
            before = hdr.ipv6.ecn;
            hdr.ipv6.ecn = ECN_CE;
        }
        if (before != ECN_CE) {
            meta.queue.flags = meta.queue.flags | (bit<8>)POSTCARD_CE_MARKED;
        }
    }
}

#endif
