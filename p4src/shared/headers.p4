/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Every header that the switch knows. A packet of the data path has ethernet and perhaps ip and tcp/udp;
 * a postcard has the outer headers and `postcard` instead.
 */
#ifndef SHARED_HEADERS_P4
#define SHARED_HEADERS_P4

typedef bit<48> mac_addr_t;
typedef bit<32> ipv4_addr_t;
typedef bit<128> ipv6_addr_t;

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<16> ETHERTYPE_IPV6 = 0x86dd;
const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;

/* RFC 3168, section 5. Any value but 0 is ECN-capable. */
const bit<2> ECN_NOT_ECT = 0;
const bit<2> ECN_ECT1 = 1;
const bit<2> ECN_ECT0 = 2;
const bit<2> ECN_CE = 3;

/* ::ffff:0:0/96, RFC 4291 section 2.5.5.2: a postcard has IPv4 addresses as IPv4-mapped IPv6 addresses. */
const bit<96> IPV4_MAPPED_PREFIX = 0xffff;

const bit<16> ETHERNET_BYTES = 14;
const bit<16> IPV4_BYTES = 20;
const bit<16> UDP_BYTES = 8;

header ethernet_h {
    mac_addr_t dst_addr;
    mac_addr_t src_addr;
    bit<16> ether_type;
}

header ipv4_h {
    bit<4> version;
    bit<4> ihl;
    bit<6> dscp;
    bit<2> ecn;
    bit<16> total_bytes;
    bit<16> identification;
    bit<3> flags;
    bit<13> fragment_offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    ipv4_addr_t src_addr;
    ipv4_addr_t dst_addr;
}

header ipv6_h {
    bit<4> version;
    bit<6> dscp;
    bit<2> ecn;
    bit<20> flow_label;
    bit<16> payload_bytes;
    bit<8> next_header;
    bit<8> hop_limit;
    ipv6_addr_t src_addr;
    ipv6_addr_t dst_addr;
}

header tcp_h {
    bit<16> src_port;
    bit<16> dst_port;
    bit<32> seq;
    bit<32> ack;
    bit<4> data_offset;
    bit<4> reserved;
    bit<8> flags;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent_pointer;
}

header udp_h {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> bytes;
    bit<16> checksum;
}

#define CONST(name, value) const int name = value;
#include "../../wire/postcard.def"
#define CONST(name, value) const int name = value;
#include "policy.def"

header postcard_h {
#define FIELD(bits, name) bit<bits> name;
#include "../../wire/postcard.def"
}

#define FIELD(bits, name) + bits
const int POSTCARD_BYTES = (0
#include "../../wire/postcard.def"
) / 8;

struct headers_t {
    ethernet_h outer_ethernet;
    ipv4_h outer_ipv4;
    udp_h outer_udp;
    postcard_h postcard;
    ethernet_h ethernet;
    ipv4_h ipv4;
    ipv6_h ipv6;
    tcp_h tcp;
    udp_h udp;
}

#endif
