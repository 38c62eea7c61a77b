/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Turns a mirrored copy of a packet into its postcard: the packet's own headers become fields, and the copy
 * is wrapped in UDP for the collector. v1model truncates the copy behind the postcard; Tofino may leave payload.
 */
#ifndef SHARED_MAKE_POSTCARD_P4
#define SHARED_MAKE_POSTCARD_P4

#include "headers.p4"
#include "metadata.p4"

const bit<16> POSTCARD_UDP_BYTES = UDP_BYTES + (bit<16>)POSTCARD_BYTES;
const bit<16> POSTCARD_IPV4_BYTES = IPV4_BYTES + POSTCARD_UDP_BYTES;
const bit<16> POSTCARD_FRAME_BYTES = ETHERNET_BYTES + POSTCARD_IPV4_BYTES;

control MakePostcard(inout headers_t hdr, in metadata_t meta) {
    action copy_facts() {
        hdr.postcard.setValid();
        hdr.postcard.version = (bit<8>)POSTCARD_VERSION;
        hdr.postcard.flags = meta.queue.flags;
        hdr.postcard.switch_id = meta.queue.switch_id;
        hdr.postcard.ingress_port = meta.queue.ingress_port;
        hdr.postcard.egress_port = meta.queue.egress_port;
        hdr.postcard.queue_id = 0;
        hdr.postcard.policy = meta.queue.policy;
        hdr.postcard.card_seq = meta.queue.card_seq;
        hdr.postcard.enqueue_switch_ns = meta.queue.enqueue_switch_ns;
        hdr.postcard.sojourn_ns = meta.queue.sojourn_ns;
        hdr.postcard.depth_packets = meta.queue.depth_packets;
        hdr.postcard.depth_bytes = meta.queue.depth_bytes;
        hdr.postcard.threshold = meta.queue.threshold;
        hdr.postcard.packet_bytes = meta.queue.packet_bytes;
        hdr.postcard.ip_protocol = 0;
        hdr.postcard.tcp_flags = 0;
        hdr.postcard.src_addr = 0;
        hdr.postcard.dst_addr = 0;
        hdr.postcard.src_port = 0;
        hdr.postcard.dst_port = 0;
        hdr.postcard.tcp_seq = 0;
        hdr.postcard.tcp_ack = 0;
        hdr.postcard.depth_cells = meta.queue.depth_cells;
        hdr.postcard.depth_unit = meta.queue.depth_unit;
    }

    action copy_ipv4() {
        hdr.postcard.flags = hdr.postcard.flags | (bit<8>)POSTCARD_HAS_IP;
        hdr.postcard.ip_protocol = hdr.ipv4.protocol;
        hdr.postcard.src_addr = IPV4_MAPPED_PREFIX ++ hdr.ipv4.src_addr;
        hdr.postcard.dst_addr = IPV4_MAPPED_PREFIX ++ hdr.ipv4.dst_addr;
    }

    action copy_ipv6() {
        hdr.postcard.flags = hdr.postcard.flags | (bit<8>)POSTCARD_HAS_IP;
        hdr.postcard.ip_protocol = hdr.ipv6.next_header;
        hdr.postcard.src_addr = hdr.ipv6.src_addr;
        hdr.postcard.dst_addr = hdr.ipv6.dst_addr;
    }

    action copy_tcp() {
        hdr.postcard.flags = hdr.postcard.flags | (bit<8>)POSTCARD_HAS_PORTS | (bit<8>)POSTCARD_HAS_TCP;
        hdr.postcard.src_port = hdr.tcp.src_port;
        hdr.postcard.dst_port = hdr.tcp.dst_port;
        hdr.postcard.tcp_seq = hdr.tcp.seq;
        hdr.postcard.tcp_ack = hdr.tcp.ack;
        hdr.postcard.tcp_flags = hdr.tcp.flags;
    }

    action copy_udp() {
        hdr.postcard.flags = hdr.postcard.flags | (bit<8>)POSTCARD_HAS_PORTS;
        hdr.postcard.src_port = hdr.udp.src_port;
        hdr.postcard.dst_port = hdr.udp.dst_port;
    }

    action drop_headers() {
        hdr.ethernet.setInvalid();
        hdr.ipv4.setInvalid();
        hdr.ipv6.setInvalid();
        hdr.tcp.setInvalid();
        hdr.udp.setInvalid();
    }

    /* The UDP checksum is 0, "none" (RFC 768). */
    action send_to_collector(mac_addr_t switch_mac, mac_addr_t collector_mac, ipv4_addr_t switch_addr,
                             ipv4_addr_t collector_addr, bit<16> src_port, bit<16> dst_port) {
        hdr.outer_ethernet.setValid();
        hdr.outer_ethernet.src_addr = switch_mac;
        hdr.outer_ethernet.dst_addr = collector_mac;
        hdr.outer_ethernet.ether_type = ETHERTYPE_IPV4;
        hdr.outer_ipv4.setValid();
        hdr.outer_ipv4.version = 4;
        hdr.outer_ipv4.ihl = 5;
        hdr.outer_ipv4.dscp = 0;
        hdr.outer_ipv4.ecn = ECN_NOT_ECT;
        hdr.outer_ipv4.total_bytes = POSTCARD_IPV4_BYTES;
        hdr.outer_ipv4.identification = 0;
        hdr.outer_ipv4.flags = 2;               // don't fragment, so the identification may be 0 (RFC 6864)
        hdr.outer_ipv4.fragment_offset = 0;
        hdr.outer_ipv4.ttl = 64;
        hdr.outer_ipv4.protocol = PROTOCOL_UDP;
        hdr.outer_ipv4.checksum = 0;
        hdr.outer_ipv4.src_addr = switch_addr;
        hdr.outer_ipv4.dst_addr = collector_addr;
        hdr.outer_udp.setValid();
        hdr.outer_udp.src_port = src_port;
        hdr.outer_udp.dst_port = dst_port;
        hdr.outer_udp.bytes = POSTCARD_UDP_BYTES;
        hdr.outer_udp.checksum = 0;
    }

    /* Without a collector the copy leaves as a bare postcard. Nobody receives it, but the counters count it. */
    table collector {
        actions = { send_to_collector; NoAction; }
        default_action = NoAction();
    }

    apply {
        copy_facts();
        if (hdr.ipv4.isValid()) {
            copy_ipv4();
        } else if (hdr.ipv6.isValid()) {
            copy_ipv6();
        }
        if (hdr.tcp.isValid()) {
            copy_tcp();
        } else if (hdr.udp.isValid()) {
            copy_udp();
        }
        drop_headers();
        collector.apply();
    }
}

#endif
