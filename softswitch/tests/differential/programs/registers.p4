/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Registers of many widths with states of any value: a token bucket, signed and saturated sums, a word of bits, indices
 * at and beyond the end; counters of packets and bytes.
 */
#include "begin.p4"

struct headers_t {
    head_h head;
}

struct metadata_t {
}

PARSER {
    state start {
        packet.extract(hdr.head);
        transition accept;
    }
}

INGRESS {
    register<bit<48>>(8) tokens;
    register<bit<24>>(8) sums;
    register<bit<1>>(64) flags;
    register<bit<63>>(4) words;
    counter(16, CounterType.packets_and_bytes) sizes;
    bit<48> token;
    bit<24> stored;
    int<24> sum;
    bit<1> flag;
    bit<63> word;
    apply {
        std.egress_spec = 2;
        tokens.read(token, (bit<32>)hdr.head.what[2:0]);
        token = token |+| (bit<48>)hdr.head.number;
        if (token > 0x10000) {
            token = token |-| (std.packet_length ++ 16w0);
            hdr.head.result[31:16] = token[15:0];
        }
        tokens.write((bit<32>)hdr.head.what[2:0], token);
        sums.read(stored, (bit<32>)hdr.head.what[5:3]);
        sum = (int<24>)stored |+| (int<24>)hdr.head.result[23:0];
        sums.write((bit<32>)hdr.head.what[5:3], (bit<24>)sum);
        if (sum < 0) {
            hdr.head.number = hdr.head.number + 1;
        }
        flags.read(flag, (bit<32>)hdr.head.count[5:0]);
        flags.write((bit<32>)hdr.head.count[5:0], flag ^ 1);
        words.read(word, (bit<32>)hdr.head.count[7:6]);
        word = (word << 7) ^ (word >> 9) ^ (bit<63>)hdr.head.result;
        words.write((bit<32>)hdr.head.count[7:6], word);
        hdr.head.result = word[62:31] + (bit<32>)flag;
        sizes.count((bit<32>)hdr.head.what[3:0]);
        if (flag == 1 && word[3:0] == 0) {
            mark_to_drop(std);
        }
    }
}

EGRESS {
    register<bit<32>>(2) lengths;
    bit<32> length;
    apply {
        lengths.read(length, (bit<32>)hdr.head.count[0:0]);
        lengths.write((bit<32>)hdr.head.count[0:0], length + std.packet_length);
        hdr.head.count = length[7:0];
    }
}

#include "end.p4"
