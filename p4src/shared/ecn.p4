/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * ECN: tests whether a packet is ECN-capable, and sets CE.
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

/* Sets CE and POSTCARD_CE_MARKED, unless the packet arrived with CE. Callers pass ECN-capable packets only.
 * The IPv4 checksum is updated by difference (RFC 1624, equation 3): options need not be read, and a wrong checksum
 * stays wrong. The word with the ECN bits grows by 1 or 2, so the checksum falls by as much. If it would fall below 0,
 * it falls by one more: the end-around carry of ones' complement.
 */
control MarkCe(inout headers_t hdr, inout metadata_t meta) {
    action mark_ipv4(bit<16> fall) {
        hdr.ipv4.checksum = hdr.ipv4.checksum - fall;
        hdr.ipv4.ecn = ECN_CE;
        meta.queue.flags = meta.queue.flags | (bit<8>)POSTCARD_CE_MARKED;
    }

    action mark_ipv6() {
        hdr.ipv6.ecn = ECN_CE;
        meta.queue.flags = meta.queue.flags | (bit<8>)POSTCARD_CE_MARKED;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            if (hdr.ipv4.ecn == ECN_ECT0) {
                if (hdr.ipv4.checksum == 0) {
                    mark_ipv4(2);
                } else {
                    mark_ipv4(1);
                }
            } else if (hdr.ipv4.ecn == ECN_ECT1) {
                if (hdr.ipv4.checksum[15:1] == 0) {
                    mark_ipv4(3);
                } else {
                    mark_ipv4(2);
                }
            }
        } else if (hdr.ipv6.isValid() && hdr.ipv6.ecn != ECN_CE) {
            mark_ipv6();
        }
    }
}

#endif
