/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Emits headers in wire order: a postcard's outer headers first, then the headers of the packet.
 */
#ifndef SHARED_DEPARSER_P4
#define SHARED_DEPARSER_P4

#include "headers.p4"

control PostcardDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.outer_ethernet);
        packet.emit(hdr.outer_ipv4);
        packet.emit(hdr.outer_udp);
        packet.emit(hdr.postcard);
    }
}

control PacketDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.tcp);
        packet.emit(hdr.udp);
    }
}

#endif
