/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Constructs that the soft switch does not support: each must be a build error with its line (log_msg is ignored).
 */
#include "begin.p4"

header tag_h {
    bit<16> ether_type;
}

header options_h {
    varbit<320> data;
}

header_union either_u {
    ethernet_h a;
    tag_h b;
}

struct headers_t {
    ethernet_h ethernet;
    tag_h[4] tags;
    options_h options;
    either_u either;
}

struct metadata_t {
    @field_list(1) bit<16> kept;
    bit<32> color;
    bit<16> ns_per_tick;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    value_set<bit<16>>(4) tag_types;
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            tag_types: parse_tag;
            0x8100: parse_more;
            0x9000: parse_options;
            default: accept;
        }
    }
    state parse_tag {
        packet.extract(hdr.either.b);
        transition accept;
    }
    state parse_more {
        packet.extract(hdr.tags.next);
        transition select(hdr.tags.last.ether_type) {
            0x8100: parse_more;
            default: accept;
        }
    }
    state parse_options {
        packet.extract(hdr.options, 320);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    meter(16, MeterType.bytes) rates;
    direct_meter<bit<32>>(MeterType.packets) direct_rates;

    action send(bit<9> port) {
        std.egress_spec = port;
    }
    action measured(bit<9> port) {
        std.egress_spec = port;
        direct_rates.read(meta.color);
    }
    table with_meter {
        key = { hdr.ethernet.dst_addr: exact; }
        actions = { measured; }
        meters = direct_rates;
    }
    table with_selector {
        key = {
            hdr.ethernet.dst_addr: exact;
            hdr.ethernet.src_addr: selector;
        }
        actions = { send; }
        @name("members") implementation = action_selector(HashAlgorithm.crc16, 32w16, 32w16);
    }
    table with_timeout {
        key = { hdr.ethernet.dst_addr: exact; }
        actions = { send; }
        support_timeout = true;
    }
    apply {
        with_meter.apply();
        with_selector.apply();
        with_timeout.apply();
        rates.execute_meter(0, meta.color);
        digest(1, { hdr.ethernet.src_addr });
        resubmit_preserving_field_list(1);
        std.mcast_grp = 3;
        std.priority = 1;
        meta.ns_per_tick = 1000;
        assert(meta.color == 0);
        log_msg("nothing");
        hdr.tags.push_front(1);
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        recirculate_preserving_field_list(1);
    }
}

control Update(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.tags);
        packet.emit(hdr.options);
    }
}

V1Switch(P(), Verify(), I(), E(), Update(), D()) main;
