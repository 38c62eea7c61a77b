/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The begin of programs that both switches execute (../programs.py): the header of every packet, and the controls' types.
 */
#include <core.p4>
#include <v1model.p4>

header head_h {
    bit<112> ethernet;
    bit<8> what;
    bit<8> count;
    bit<16> number;
    bit<32> result;
}

#define PARSER parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std)
#define INGRESS control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std)
#define EGRESS control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std)
