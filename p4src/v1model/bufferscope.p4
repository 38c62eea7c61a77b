/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * bufferscope on v1model (the soft switch, BMv2): forward, watch the queue and apply its policy. If
 * postcards are switched on, every packet that came to a watched queue gets one, whether it left or was dropped.
 *
 *            parser -> ingress -> queue -> egress -> deparser
 *                         |                   |
 *                 dropped on arrival      departed, or dropped on departure
 *                         +---- copies, each turned into a postcard by egress ----> collector
 */
#include <core.p4>
#include <v1model.p4>

#include "names.p4"
#include "../shared/headers.p4"
#include "../shared/metadata.p4"
#include "../shared/parser.p4"
#include "../shared/deparser.p4"
#include "../shared/forwarding.p4"
#include "../shared/queue_policy.p4"
#include "../shared/ecn.p4"
#include "../shared/depth_histogram.p4"
#include "../shared/make_postcard.p4"
#include "queue_length.p4"
#ifdef WITH_POLICY
#include "own_policy.p4"
#endif

const bit<32> INSTANCE_TYPE_NORMAL = 0;

/* A lost postcard shows as a gap: packets are numbered before they are mirrored. Ingress and egress have a register
 * each, because a register must have only one writer. */
register<bit<32>>(PORTS) ingress_card_seq;
register<bit<32>>(PORTS) egress_card_seq;

parser V1Parser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    PacketParser() packet_parser;
    state start {
        packet_parser.apply(packet, hdr);
        transition accept;
    }
}

control NoChecksumToVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control QueueIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Forwarding() forwarding;
    QueuePolicy() queue_policy;
    ReadEcn() read_ecn;
    ReadDepth() read_depth;
    DepthHistogram() depth_histogram;
    ArrivalVerdict(true) arrival_verdict;
    MarkCe() mark_ce;
    CountAdmitted() count_admitted;
#ifdef WITH_POLICY
    OwnArrival() own_arrival;
#endif

    counter(PORTS, CounterType.packets_and_bytes) unknown_hosts;     // by ingress port
    counter(PORTS, CounterType.packets_and_bytes) arrivals;          // by egress port, watched queues only
    counter(PORTS, CounterType.packets_and_bytes) arrival_drops;
    counter(PORTS, CounterType.packets_and_bytes) arrival_marks;

    bit<9> port;
    bool known;
    bit<32> depth;
    bit<32> card_seq;

    apply {
        forwarding.apply(hdr, port, known);
        if (!known) {
            unknown_hosts.count((bit<32>)standard_metadata.ingress_port);
            mark_to_drop(standard_metadata);
        } else {
            standard_metadata.egress_spec = port;
            queue_policy.apply(port, meta);
            if (meta.queue.policy != (bit<8>)POLICY_NONE) {
                arrivals.count((bit<32>)port);
                meta.queue.ingress_port = (bit<16>)standard_metadata.ingress_port;
                meta.queue.egress_port = (bit<16>)port;
                meta.queue.packet_bytes = (bit<16>)standard_metadata.packet_length;
                meta.queue.enqueue_switch_ns =
                    standard_metadata.ingress_global_timestamp * (bit<48>)meta.ns_per_tick;
                read_ecn.apply(hdr, meta);
                read_depth.apply(port, meta.queue.depth_packets, meta.queue.depth_bytes);
                depth_histogram.apply(port, meta.queue.depth_packets);
                depth = meta.queue.depth_packets;
                if (meta.policy.threshold_in_bytes == 1) {
                    depth = meta.queue.depth_bytes;
                    meta.queue.flags = meta.queue.flags | (bit<8>)POSTCARD_BYTE_THRESHOLD;
                }
                arrival_verdict.apply(depth, meta);
#ifdef WITH_POLICY
                own_arrival.apply(hdr, meta);
#endif
                if (meta.drop == 1) {
                    arrival_drops.count((bit<32>)port);
                    mark_to_drop(standard_metadata);
                    if (meta.report == 1) {
                        ingress_card_seq.read(card_seq, (bit<32>)port);
                        ingress_card_seq.write((bit<32>)port, card_seq + 1);
                        meta.queue.card_seq = card_seq;
                        meta.queue.flags = meta.queue.flags |
                            (bit<8>)POSTCARD_DROPPED | (bit<8>)POSTCARD_AT_INGRESS;
                        clone_preserving_field_list(CloneType.I2E, POSTCARD_MIRROR_SESSION, KEPT_BY_POSTCARDS);
                    }
                } else {
                    if (meta.mark == 1) {
                        arrival_marks.count((bit<32>)port);
                        mark_ce.apply(hdr, meta);
                    }
                    count_admitted.apply(port, meta.queue.packet_bytes);
                }
            }
        }
    }
}

control QueueEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    ReadDepth() read_depth;
    CountDeparted() count_departed;
    DepartureVerdict() departure_verdict;
    MarkCe() mark_ce;
    MakePostcard() make_postcard;
#ifdef WITH_POLICY
    OwnDeparture() own_departure;
#endif

    counter(PORTS, CounterType.packets_and_bytes) departure_drops;   // by egress port, watched queues only
    counter(PORTS, CounterType.packets_and_bytes) departure_marks;
    counter(PORTS, CounterType.packets_and_bytes) postcards_made;    // by the port that the postcard leaves from

    bit<32> depth;
    bit<32> depth_packets;
    bit<32> depth_bytes;
    bit<32> card_seq;

    apply {
        if (standard_metadata.instance_type != INSTANCE_TYPE_NORMAL) {
            postcards_made.count((bit<32>)standard_metadata.egress_port);
            make_postcard.apply(hdr, meta);
            truncate((bit<32>)POSTCARD_FRAME_BYTES);
        } else if (meta.queue.policy != (bit<8>)POLICY_NONE) {
            count_departed.apply(standard_metadata.egress_port, meta.queue.packet_bytes);
            read_depth.apply(standard_metadata.egress_port, depth_packets, depth_bytes);
            depth = depth_packets;
            if (meta.policy.threshold_in_bytes == 1) {
                depth = depth_bytes;
            }
            departure_verdict.apply(depth, meta);
#ifdef WITH_POLICY
            own_departure.apply(hdr, standard_metadata.egress_global_timestamp * (bit<48>)meta.ns_per_tick,
                depth_packets, depth_bytes, meta);
#endif
            if (meta.drop == 1) {
                departure_drops.count((bit<32>)standard_metadata.egress_port);
                meta.queue.flags = meta.queue.flags | (bit<8>)POSTCARD_DROPPED;
            } else if (meta.mark == 1) {
                departure_marks.count((bit<32>)standard_metadata.egress_port);
                mark_ce.apply(hdr, meta);
            }
            if (meta.report == 1) {
                egress_card_seq.read(card_seq, (bit<32>)standard_metadata.egress_port);
                egress_card_seq.write((bit<32>)standard_metadata.egress_port, card_seq + 1);
                meta.queue.card_seq = card_seq;
                meta.queue.sojourn_ns = (standard_metadata.egress_global_timestamp -
                    standard_metadata.ingress_global_timestamp) * (bit<48>)meta.ns_per_tick;
                clone_preserving_field_list(CloneType.E2E, POSTCARD_MIRROR_SESSION, KEPT_BY_POSTCARDS);
            }
            if (meta.drop == 1) {
                mark_to_drop(standard_metadata);
            }
        }
    }
}

/* Only a postcard's outer header gets a checksum here. MarkCe adjusts the checksum of a data packet (shared/ecn.p4). */
control PostcardChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.outer_ipv4.isValid(),
            { hdr.outer_ipv4.version, hdr.outer_ipv4.ihl, hdr.outer_ipv4.dscp, hdr.outer_ipv4.ecn,
              hdr.outer_ipv4.total_bytes, hdr.outer_ipv4.identification, hdr.outer_ipv4.flags,
              hdr.outer_ipv4.fragment_offset, hdr.outer_ipv4.ttl, hdr.outer_ipv4.protocol,
              hdr.outer_ipv4.src_addr, hdr.outer_ipv4.dst_addr },
            hdr.outer_ipv4.checksum, HashAlgorithm.csum16);
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

V1Switch(V1Parser(), NoChecksumToVerify(), QueueIngress(), QueueEgress(), PostcardChecksum(), V1Deparser()) main;
