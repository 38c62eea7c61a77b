/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The parsers and deparsers of both pipelines: the shared ones with Tofino's own headers in front.
 */
#ifndef TNA_PARSERS_P4
#define TNA_PARSERS_P4

#include "names.p4"
#include "egress.p4"
#include "internal_headers.p4"
#include "../shared/deparser.p4"
#include "../shared/parser.p4"
#include "../shared/sizes.p4"

parser IngressParser(packet_in packet, out headers_t hdr, out ingress_metadata_t meta,
                     out ingress_intrinsic_metadata_t ig_intr_md) {
    PacketParser() packet_parser;

    state start {
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        meta.packet.queue.switch_id = 0;        // some table actions do not set these three
        meta.packet.queue.threshold = 0;
        meta.packet.policy.mark_instead_of_drop = 0;
        packet_parser.apply(packet, hdr);
        transition accept;
    }
}

control IngressDeparser(packet_out packet, inout headers_t hdr, in ingress_metadata_t meta,
                        in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md) {
    PacketDeparser() packet_deparser;

    apply {
        packet.emit(meta.unwatched);
        packet.emit(meta.watched);
        packet_deparser.apply(packet, hdr);
    }
}

parser EgressParser(packet_in packet, out headers_t hdr, out egress_metadata_t meta,
                    out egress_intrinsic_metadata_t eg_intr_md) {
    PacketParser() packet_parser;

    state start {
        packet.extract(eg_intr_md);
        transition select(packet.lookahead<kind_h>().kind) {
            KIND_WATCHED: parse_watched;
            KIND_COPY: parse_copy;
            default: skip_kind;
        }
    }

    state skip_kind {
        packet.advance(8);
        transition accept;
    }

    state parse_watched {
        packet.extract(meta.watched);
        transition parse_packet;
    }

    state parse_copy {
        packet.extract(meta.copy);
        transition parse_packet;
    }

    state parse_packet {
        packet_parser.apply(packet, hdr);
        transition accept;
    }
}

control EgressDeparser(packet_out packet, inout headers_t hdr, in egress_metadata_t meta,
                       in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    PostcardDeparser() postcard_deparser;
    PacketDeparser() packet_deparser;
    Mirror() mirror;
    Checksum() checksum;

    apply {
        if (eg_dprsr_md.mirror_type == MIRROR_POSTCARD) {
            mirror.emit<copy_h>(meta.session, {
                meta.kind, meta.policy, meta.packet.queue.flags, meta.packet.queue.switch_id,
                meta.packet.queue.ingress_port, meta.packet.queue.egress_port, meta.packet.queue.card_seq,
                meta.packet.queue.enqueue_switch_ns, meta.sojourn_ns, meta.packet.queue.depth_cells,
                meta.packet.queue.threshold, meta.packet.queue.packet_bytes });
        }
        /* Only a postcard's outer header gets a checksum here. MarkCe adjusts that of a data packet (shared/ecn.p4). */
        if (hdr.outer_ipv4.isValid()) {
            hdr.outer_ipv4.checksum = checksum.update({
                hdr.outer_ipv4.version, hdr.outer_ipv4.ihl, hdr.outer_ipv4.dscp, hdr.outer_ipv4.ecn,
                hdr.outer_ipv4.total_bytes, hdr.outer_ipv4.identification, hdr.outer_ipv4.flags,
                hdr.outer_ipv4.fragment_offset, hdr.outer_ipv4.ttl, hdr.outer_ipv4.protocol,
                hdr.outer_ipv4.src_addr, hdr.outer_ipv4.dst_addr });
        }
        postcard_deparser.apply(packet, hdr);
        packet_deparser.apply(packet, hdr);
    }
}

#endif
