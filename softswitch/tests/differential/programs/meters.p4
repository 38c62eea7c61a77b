/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Meters of packets and of bytes, and those of a table's entries, with buckets that do not fill again.
 */
#include "begin.p4"

struct headers_t {
    head_h head;
}

struct metadata_t {
    bit<8> color;
    bit<8> other;
    bit<8> direct;
}

PARSER {
    state start {
        packet.extract(hdr.head);
        transition accept;
    }
}

INGRESS {
    meter(8, MeterType.packets) packets;
    meter(8, MeterType.bytes) sizes;
    direct_meter<bit<8>>(MeterType.packets) entries;
    action send(bit<9> port) {
        std.egress_spec = port;
        entries.read(meta.direct);
    }
    action drop() {
        entries.read(meta.direct);
        mark_to_drop(std);
    }
    table ports {
        key = {
            hdr.head.count: exact;
        }
        actions = {
            send;
            drop;
        }
        meters = entries;
        default_action = send(2);
    }
    apply {
        packets.execute_meter((bit<32>)hdr.head.what[2:0], meta.color);
        sizes.execute_meter((bit<32>)hdr.head.what[5:3], meta.other);
        ports.apply();
        hdr.head.result = hdr.head.result[31:24] ++ meta.color ++ meta.other ++ meta.direct;
        if (meta.color == 2) {
            mark_to_drop(std);
        }
    }
}

EGRESS {
    apply { }
}

#include "end.p4"
