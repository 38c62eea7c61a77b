/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Egress, behind the traffic manager. It applies ECN and departure drops to packets of a watched queue. If postcards
 * are switched on, it numbers and mirrors these packets and refused ones, and makes postcards of the mirrored copies.
 */
#ifndef TNA_EGRESS_P4
#define TNA_EGRESS_P4

#include "names.p4"
#include "internal_headers.p4"
#include "queue_time.p4"
#include "../shared/queue_policy.p4"
#include "../shared/ecn.p4"
#include "../shared/depth_histogram.p4"
#include "../shared/make_postcard.p4"

const MirrorType_t MIRROR_POSTCARD = 1;
const bit<16> FCS_BYTES = 4;

control QueueEgress(inout headers_t hdr, inout egress_metadata_t meta, in egress_intrinsic_metadata_t eg_intr_md,
                    in egress_intrinsic_metadata_from_parser_t eg_prsr_md,
                    inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
                    inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {
    QueueTime() queue_time;
    DepthHistogram() depth_histogram;
    ReadEcn() read_ecn;
    ArrivalVerdict(false) arrival_verdict;      // the traffic manager limits the queue
    DepartureVerdict() departure_verdict;
    MarkCe() mark_ce;
    MakePostcard() make_postcard;

    PORT_COUNTER arrival_drops;         // by egress port, watched queues only
    PORT_COUNTER arrival_marks;
    PORT_COUNTER departure_drops;
    PORT_COUNTER departure_marks;
    PORT_COUNTER postcards_made;        // by the port that the postcard leaves from

    /* A lost postcard shows as a gap: packets are numbered before they are mirrored. All packets of a port pass one
     * pipe, so one register numbers them. Refused packets come by another port and have a sequence of their own.
     */
    CARD_SEQUENCE(ingress_card_seq);
    CARD_SEQUENCE(egress_card_seq);

    PortId_t port;

    action take_facts() {
        meta.packet.queue.flags = 0;
        meta.packet.queue.policy = (bit<8>)meta.watched.policy;
        meta.packet.queue.ingress_port = meta.watched.ingress_port;
        meta.packet.queue.egress_port = meta.watched.egress_port;
        meta.packet.queue.switch_id = meta.watched.switch_id;
        meta.packet.queue.threshold = meta.watched.threshold;
        meta.packet.policy.mark_instead_of_drop = meta.watched.mark_instead_of_drop;
        meta.packet.queue.packet_bytes = eg_intr_md.pkt_length - FCS_BYTES;
        meta.packet.queue.depth_cells = (bit<32>)eg_intr_md.enq_qdepth;
        meta.policy = meta.watched.policy;
        port = meta.watched.egress_port[8:0];
    }

    /* The packet never was in the watched queue: the chip's depth and sojourn are those of the deflection queue. */
    action refuse() {
        meta.packet.queue.flags = meta.packet.queue.flags | (bit<8>)POSTCARD_DROPPED | (bit<8>)POSTCARD_AT_INGRESS;
        meta.packet.queue.depth_cells = 0;
        meta.sojourn_ns = 0;
    }

    action mirror_postcard() {
        meta.kind = KIND_COPY;
        meta.session = POSTCARD_MIRROR_SESSION;
        eg_dprsr_md.mirror_type = MIRROR_POSTCARD;
#if __TARGET_TOFINO__ != 1
        eg_dprsr_md.mirror_io_select = 1;       // the packet as it leaves, without the internal header
#endif
    }

    action take_copied_facts() {
        meta.packet.queue.flags = meta.copy.flags;
        meta.packet.queue.policy = (bit<8>)meta.copy.policy;
        meta.packet.queue.switch_id = meta.copy.switch_id;
        meta.packet.queue.ingress_port = meta.copy.ingress_port;
        meta.packet.queue.egress_port = meta.copy.egress_port;
        meta.packet.queue.card_seq = meta.copy.card_seq;
        meta.packet.queue.enqueue_switch_ns = meta.copy.enqueue_switch_ns;
        meta.packet.queue.sojourn_ns = (bit<48>)meta.copy.sojourn_ns;
        meta.packet.queue.depth_packets = 0;
        meta.packet.queue.depth_bytes = 0;
        meta.packet.queue.depth_cells = meta.copy.depth_cells;
        meta.packet.queue.depth_unit = (bit<8>)POSTCARD_DEPTH_CELLS;
        meta.packet.queue.threshold = meta.copy.threshold;
        meta.packet.queue.packet_bytes = meta.copy.packet_bytes;
    }

    apply {
        if (meta.copy.isValid()) {
            postcards_made.count(eg_intr_md.egress_port);
            take_copied_facts();
            if (meta.copy.flags & (bit<8>)POSTCARD_AT_INGRESS != 0) {
                meta.packet.queue.depth_unit = (bit<8>)POSTCARD_DEPTH_UNKNOWN;
            }
            make_postcard.apply(hdr, meta.packet);
        } else if (meta.watched.isValid()) {
            take_facts();
            queue_time.apply(eg_intr_md, meta.watched.ingress_ns, eg_prsr_md.global_tstamp,
                             meta.packet.queue.enqueue_switch_ns, meta.sojourn_ns);
            read_ecn.apply(hdr, meta.packet);
            if (eg_intr_md.deflection_flag == 1) {
                arrival_drops.count(port);
                refuse();
                eg_dprsr_md.drop_ctl = 1;
                if (meta.watched.report == 1) {
                    NEXT_CARD(ingress_card_seq, port, meta.packet.queue.card_seq);
                    mirror_postcard();
                }
            } else {
                depth_histogram.apply(port, meta.packet.queue.depth_cells);
                if (meta.packet.queue.policy == (bit<8>)POLICY_ECN) {
                    arrival_verdict.apply(meta.packet.queue.depth_cells, meta.packet);
                    if (meta.packet.mark == 1) {
                        arrival_marks.count(port);
                    }
                } else {
                    departure_verdict.apply((bit<32>)eg_intr_md.deq_qdepth, meta.packet);
                    if (meta.packet.mark == 1) {
                        departure_marks.count(port);
                    }
                }
                if (meta.packet.mark == 1) {
                    mark_ce.apply(hdr, meta.packet);
                }
                if (meta.packet.drop == 1) {
                    departure_drops.count(port);
                    meta.packet.queue.flags = meta.packet.queue.flags | (bit<8>)POSTCARD_DROPPED;
                    eg_dprsr_md.drop_ctl = 1;
                }
                if (meta.watched.report == 1) {
                    NEXT_CARD(egress_card_seq, port, meta.packet.queue.card_seq);
                    mirror_postcard();
                }
            }
        }
    }
}

#endif
