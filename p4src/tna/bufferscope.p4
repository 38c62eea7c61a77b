/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * bufferscope on Tofino (TNA, both generations): forward, let the traffic manager limit the queue, apply what is left of
 * the policy behind it, and send one postcard for every packet that came to a watched queue.
 *
 *      ingress -> traffic manager -> queue of the port ----> egress, ECN marks and departure drops
 *                        |                                      |
 *                 refused: deflected -> queue for such ----> egress, numbered apart and dropped
 *                                                               |
 *      collector <- egress, made a postcard <- traffic manager <- mirrored copies of both
 */
#include "names.p4"
#include "internal_headers.p4"
#include "parsers.p4"
#include "queue_time.p4"
#include "../shared/forwarding.p4"
#include "../shared/queue_policy.p4"
#include "../shared/ecn.p4"
#include "../shared/depth_histogram.p4"
#include "../shared/make_postcard.p4"

const bit<16> FCS_BYTES = 4;

control QueueIngress(inout headers_t hdr, inout ingress_metadata_t meta, in ingress_intrinsic_metadata_t ig_intr_md,
                     in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
                     inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
                     inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    Forwarding() forwarding;
    QueuePolicy() queue_policy;

    PORT_COUNTER unknown_hosts;         // by ingress port
    PORT_COUNTER arrivals;              // by egress port, watched queues only

    PortId_t port;
    bool known;

    action tell_egress() {
        meta.watched.setValid();
        meta.watched.kind = KIND_WATCHED;
        meta.watched.policy = meta.packet.queue.policy[3:0];
        meta.watched.unused = 0;
        meta.watched.report = meta.packet.report;
        meta.watched.mark_instead_of_drop = meta.packet.policy.mark_instead_of_drop;
        meta.watched.ingress_port = (bit<16>)ig_intr_md.ingress_port;
        meta.watched.egress_port = (bit<16>)port;
        meta.watched.switch_id = meta.packet.queue.switch_id;
        meta.watched.threshold = meta.packet.queue.threshold;
        meta.watched.ingress_ns = ig_prsr_md.global_tstamp;
        ig_tm_md.deflect_on_drop = 1;   // what the traffic manager refuses comes to egress all the same
    }

    action tell_nothing() {
        meta.unwatched.setValid();
        meta.unwatched.kind = KIND_UNWATCHED;
        meta.unwatched.policy = (bit<4>)POLICY_NONE;
    }

    apply {
        forwarding.apply(hdr, port, known);
        if (!known) {
            unknown_hosts.count(ig_intr_md.ingress_port);
            ig_dprsr_md.drop_ctl = 1;
        } else {
            ig_tm_md.ucast_egress_port = port;
            queue_policy.apply(port, meta.packet);
            if (meta.packet.queue.policy != (bit<8>)POLICY_NONE) {
                arrivals.count(port);
                tell_egress();
            } else {
                tell_nothing();
            }
        }
    }
}

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

    /* A lost postcard shows as a gap: packets are numbered before they are mirrored, those that the traffic manager
     * refused apart, because they go through another port. All of one port's come to one pipe.
     */
    Register<bit<32>, PortId_t>(PORTS) ingress_card_seq;
    RegisterAction<bit<32>, PortId_t, bit<32>>(ingress_card_seq) next_ingress_card = {
        void apply(inout bit<32> next, out bit<32> number) {
            number = next;
            next = next + 1;
        }
    };
    Register<bit<32>, PortId_t>(PORTS) egress_card_seq;
    RegisterAction<bit<32>, PortId_t, bit<32>>(egress_card_seq) next_egress_card = {
        void apply(inout bit<32> next, out bit<32> number) {
            number = next;
            next = next + 1;
        }
    };

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

    /* It never was in the queue: the depth is that of the queue for refused packets, and means nothing. */
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
        eg_dprsr_md.mirror_io_select = 1;       // the packet as it leaves, without what ingress told
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
                    meta.packet.queue.card_seq = next_ingress_card.execute(port);
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
                    meta.packet.queue.card_seq = next_egress_card.execute(port);
                    mirror_postcard();
                }
            }
        }
    }
}

Pipeline(IngressParser(), QueueIngress(), IngressDeparser(), EgressParser(), QueueEgress(), EgressDeparser()) pipe;
Switch(pipe) main;
