/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The controls of the TNA program between v1model's parser, queue and deparser. So packets can pass these controls
 * without a Tofino. This program imitates the parts between the pipelines: mirroring, and a traffic manager that counts
 * CELLS_PER_PACKET for each packet of a watched queue, limits the queue, deflects refused packets, and stamps refused
 * and admitted ones. It lacks the TNA parsers and deparsers, and the real traffic manager.
 */
#include "tna_names.p4"
#include "../../tna/internal_headers.p4"
#include "../../tna/ingress.p4"
#include "../../tna/egress.p4"
#include "../../shared/deparser.p4"
#include "../../shared/parser.p4"

#define KEPT 1
const bit<32> INSTANCE_TYPE_NORMAL = 0;
const bit<32> CELLS_PER_PACKET = 3;
const bit<48> INGRESS_NS = 400;         // from the ingress parser to the queue
const bit<48> EGRESS_NS = 150;          // from the queue to the egress parser

register<bit<32>, PortId_t>(PORTS) admitted;            // packets; written by ingress only
register<bit<32>, PortId_t>(PORTS) departed;            // packets; written by egress only
register<bit<32>, PortId_t>(PORTS) queue_limit_cells;
register<bit<9>, bit<1>>(1) mirror_drop_port;

struct v1_metadata_t {
    bit<16> ns_per_tick;    // asks the soft switch for stamps in ns
    bit<1> is_watched;
    bit<1> deflected;
    bit<16> frame_bytes;
    bit<19> enq_qdepth;
    bit<48> enqueued_ns;
    /* watched_h */
    bit<4> policy;
    bit<1> report;
    bit<1> mark_instead_of_drop;
    bit<16> ingress_port;
    bit<16> egress_port;
    bit<16> switch_id;
    bit<32> threshold;
    bit<48> ingress_ns;
    /* copy_h */
    @field_list(KEPT) bit<4> copied_policy;
    @field_list(KEPT) bit<8> copied_flags;
    @field_list(KEPT) bit<16> copied_switch_id;
    @field_list(KEPT) bit<16> copied_ingress_port;
    @field_list(KEPT) bit<16> copied_egress_port;
    @field_list(KEPT) bit<32> copied_card_seq;
    @field_list(KEPT) bit<48> copied_enqueue_switch_ns;
    @field_list(KEPT) bit<32> copied_sojourn_ns;
    @field_list(KEPT) bit<32> copied_depth_cells;
    @field_list(KEPT) bit<32> copied_threshold;
    @field_list(KEPT) bit<16> copied_packet_bytes;
}

parser V1Parser(packet_in packet, out headers_t hdr, inout v1_metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    PacketParser() packet_parser;
    state start {
        packet_parser.apply(packet, hdr);
        transition accept;
    }
}

control NoChecksum(inout headers_t hdr, inout v1_metadata_t meta) {
    apply { }
}

control V1Ingress(inout headers_t hdr, inout v1_metadata_t v1, inout standard_metadata_t standard_metadata) {
    QueueIngress() queue_ingress;

    ingress_metadata_t meta;
    ingress_intrinsic_metadata_t ig_intr_md;
    ingress_intrinsic_metadata_from_parser_t ig_prsr_md;
    ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md;
    ingress_intrinsic_metadata_for_tm_t ig_tm_md;
    bit<32> count;
    bit<32> gone;
    bit<32> limit;
    bit<32> depth;

    apply {
        meta.packet.queue.switch_id = 0;
        meta.packet.queue.threshold = 0;
        meta.packet.policy.mark_instead_of_drop = 0;
        v1.frame_bytes = (bit<16>)standard_metadata.packet_length;     // before headers are added
        ig_intr_md.ingress_port = standard_metadata.ingress_port;
        ig_prsr_md.global_tstamp = standard_metadata.ingress_global_timestamp;
        ig_dprsr_md.drop_ctl = 0;
        ig_tm_md.deflect_on_drop = 0;
        queue_ingress.apply(hdr, meta, ig_intr_md, ig_prsr_md, ig_dprsr_md, ig_tm_md);
        if (ig_dprsr_md.drop_ctl == 1) {
            mark_to_drop(standard_metadata);
        } else {
            standard_metadata.egress_spec = ig_tm_md.ucast_egress_port;
            if (meta.watched.isValid()) {
                v1.is_watched = 1;
                v1.policy = meta.watched.policy;
                v1.report = meta.watched.report;
                v1.mark_instead_of_drop = meta.watched.mark_instead_of_drop;
                v1.ingress_port = meta.watched.ingress_port;
                v1.egress_port = meta.watched.egress_port;
                v1.switch_id = meta.watched.switch_id;
                v1.threshold = meta.watched.threshold;
                v1.ingress_ns = meta.watched.ingress_ns;
                v1.enqueued_ns = meta.watched.ingress_ns + INGRESS_NS;
                admitted.read(count, ig_tm_md.ucast_egress_port);
                departed.read(gone, ig_tm_md.ucast_egress_port);
                queue_limit_cells.read(limit, ig_tm_md.ucast_egress_port);
                depth = (count - gone) * CELLS_PER_PACKET;
                v1.enq_qdepth = (bit<19>)depth;
                if (depth >= limit) {
                    if (ig_tm_md.deflect_on_drop == 1) {
                        v1.deflected = 1;
                        v1.enq_qdepth = 77;     // the depth of another queue
                        mirror_drop_port.read(standard_metadata.egress_spec, 0);
                    } else {
                        mark_to_drop(standard_metadata);
                    }
                } else {
                    admitted.write(ig_tm_md.ucast_egress_port, count + 1);
                }
            }
        }
    }
}

control V1Egress(inout headers_t hdr, inout v1_metadata_t v1, inout standard_metadata_t standard_metadata) {
    QueueEgress() queue_egress;

    egress_metadata_t meta;
    egress_intrinsic_metadata_t eg_intr_md;
    egress_intrinsic_metadata_from_parser_t eg_prsr_md;
    egress_intrinsic_metadata_for_deparser_t eg_dprsr_md;
    egress_intrinsic_metadata_for_output_port_t eg_oport_md;
    bit<32> count;
    bit<32> gone;
    bit<48> stay;

    apply {
        meta.watched.setInvalid();
        meta.copy.setInvalid();
        eg_intr_md.egress_port = standard_metadata.egress_port;
        eg_intr_md.deflection_flag = v1.deflected;
        eg_intr_md.pkt_length = v1.frame_bytes + FCS_BYTES;
        eg_intr_md.enq_qdepth = v1.enq_qdepth;
        eg_intr_md.deq_qdepth = 0;
        stay = standard_metadata.egress_global_timestamp - standard_metadata.ingress_global_timestamp;
        eg_prsr_md.global_tstamp = v1.enqueued_ns + stay + EGRESS_NS;
#if __TARGET_TOFINO__ == 1
        eg_intr_md.enq_tstamp = v1.enqueued_ns[17:0];
        eg_intr_md.deq_timedelta = stay[17:0];
#else
        eg_intr_md.enq_tstamp = v1.enqueued_ns[31:0];
        eg_intr_md.deq_timedelta = stay[31:0];
#endif
        eg_dprsr_md.drop_ctl = 0;
        eg_dprsr_md.mirror_type = 0;
        if (standard_metadata.instance_type != INSTANCE_TYPE_NORMAL) {
            meta.copy.setValid();
            meta.copy.policy = v1.copied_policy;
            meta.copy.flags = v1.copied_flags;
            meta.copy.switch_id = v1.copied_switch_id;
            meta.copy.ingress_port = v1.copied_ingress_port;
            meta.copy.egress_port = v1.copied_egress_port;
            meta.copy.card_seq = v1.copied_card_seq;
            meta.copy.enqueue_switch_ns = v1.copied_enqueue_switch_ns;
            meta.copy.sojourn_ns = v1.copied_sojourn_ns;
            meta.copy.depth_cells = v1.copied_depth_cells;
            meta.copy.threshold = v1.copied_threshold;
            meta.copy.packet_bytes = v1.copied_packet_bytes;
        } else if (v1.is_watched == 1) {
            meta.watched.setValid();
            meta.watched.policy = v1.policy;
            meta.watched.report = v1.report;
            meta.watched.mark_instead_of_drop = v1.mark_instead_of_drop;
            meta.watched.ingress_port = v1.ingress_port;
            meta.watched.egress_port = v1.egress_port;
            meta.watched.switch_id = v1.switch_id;
            meta.watched.threshold = v1.threshold;
            meta.watched.ingress_ns = v1.ingress_ns;
            if (v1.deflected == 0) {
                admitted.read(count, standard_metadata.egress_port);
                departed.read(gone, standard_metadata.egress_port);
                departed.write(standard_metadata.egress_port, gone + 1);
                eg_intr_md.deq_qdepth = (bit<19>)((count - gone - 1) * CELLS_PER_PACKET);
            }
        }
        queue_egress.apply(hdr, meta, eg_intr_md, eg_prsr_md, eg_dprsr_md, eg_oport_md);
        if (meta.copy.isValid()) {
            truncate((bit<32>)POSTCARD_FRAME_BYTES);
        }
        if (eg_dprsr_md.mirror_type == MIRROR_POSTCARD) {
            v1.copied_policy = meta.policy;
            v1.copied_flags = meta.packet.queue.flags;
            v1.copied_switch_id = meta.packet.queue.switch_id;
            v1.copied_ingress_port = meta.packet.queue.ingress_port;
            v1.copied_egress_port = meta.packet.queue.egress_port;
            v1.copied_card_seq = meta.packet.queue.card_seq;
            v1.copied_enqueue_switch_ns = meta.packet.queue.enqueue_switch_ns;
            v1.copied_sojourn_ns = meta.sojourn_ns;
            v1.copied_depth_cells = meta.packet.queue.depth_cells;
            v1.copied_threshold = meta.packet.queue.threshold;
            v1.copied_packet_bytes = meta.packet.queue.packet_bytes;
            clone_preserving_field_list(CloneType.E2E, POSTCARD_MIRROR_SESSION, KEPT);
        }
        if (eg_dprsr_md.drop_ctl == 1) {
            mark_to_drop(standard_metadata);
        }
    }
}

control V1Deparser(packet_out packet, in headers_t hdr) {
    PostcardDeparser() postcard_deparser;
    PacketDeparser() packet_deparser;

    apply {
        postcard_deparser.apply(packet, hdr);
        packet_deparser.apply(packet, hdr);
    }
}

V1Switch(V1Parser(), NoChecksum(), V1Ingress(), V1Egress(), NoChecksum(), V1Deparser()) main;
