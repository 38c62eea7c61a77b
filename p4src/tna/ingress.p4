/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Forwards packets. Puts a header for egress in front of each: facts if the queue is watched, else one byte.
 */
#ifndef TNA_INGRESS_P4
#define TNA_INGRESS_P4

#include "names.p4"
#include "internal_headers.p4"
#include "../shared/forwarding.p4"
#include "../shared/queue_policy.p4"

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
        ig_tm_md.deflect_on_drop = 1;   // packets that the traffic manager refuses come to egress, too
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

#endif
