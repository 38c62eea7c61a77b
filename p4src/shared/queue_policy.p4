/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Looks up the policy of a queue, and decides about one packet from the depth that the target passes. The decision is
 * only metadata: the target counts, drops and mirrors packets.
 */
#ifndef SHARED_QUEUE_POLICY_P4
#define SHARED_QUEUE_POLICY_P4

#include "headers.p4"
#include "metadata.p4"
#include "sizes.p4"

/* Looks up the policy in force. The control plane may change both tables while traffic runs. */
control QueuePolicy(in bit<9> egress_port, inout metadata_t meta) {
    action unwatched() {
        meta.queue.policy = (bit<8>)POLICY_NONE;
    }

    action tail_drop(bit<32> threshold, bit<1> in_bytes) {
        meta.queue.policy = (bit<8>)POLICY_TAIL_DROP;
        meta.queue.threshold = threshold;
        meta.policy.threshold_in_bytes = in_bytes;
    }

    action ecn(bit<32> threshold, bit<32> hard_limit, bit<1> in_bytes) {
        meta.queue.policy = (bit<8>)POLICY_ECN;
        meta.queue.threshold = threshold;
        meta.policy.hard_limit = hard_limit;
        meta.policy.threshold_in_bytes = in_bytes;
    }

    action egress_threshold(bit<32> threshold, bit<1> mark_instead_of_drop, bit<1> in_bytes) {
        meta.queue.policy = (bit<8>)POLICY_EGRESS_THRESHOLD;
        meta.queue.threshold = threshold;
        meta.policy.mark_instead_of_drop = mark_instead_of_drop;
        meta.policy.threshold_in_bytes = in_bytes;
    }

    table queue_policy {
        key = { egress_port: exact; }
        actions = { unwatched; tail_drop; ecn; egress_threshold; }
        default_action = unwatched();
        size = PORTS;
    }

    action report(bit<16> switch_id, bit<16> ns_per_tick) {
        meta.report = 1;
        meta.queue.switch_id = switch_id;
        meta.ns_per_tick = ns_per_tick;
    }

    action silent() {
        meta.report = 0;
    }

    table postcards {
        key = { egress_port: exact; }
        actions = { report; silent; }
        default_action = silent();
        size = PORTS;
    }

    apply {
        queue_policy.apply();
        postcards.apply();
    }
}

/* Decides about a packet that arrives at a queue of `depth` (in the unit of the threshold). On Tofino `limits` is
 * false: the traffic manager limits the queue, and this control applies only the marking threshold of policy ecn.
 */
control ArrivalVerdict(in bit<32> depth, inout metadata_t meta)(bool limits) {
    bit<32> room;

    /* Tofino cannot test which of two fields is larger: an action computes their difference, to be compared with 0. */
    action compare() {
        room = meta.queue.threshold |-| depth;
        meta.drop = 0;
        meta.mark = 0;
    }

    apply {
        compare();
        if (meta.queue.policy == (bit<8>)POLICY_ECN) {
            if (limits && depth >= meta.policy.hard_limit) {
                meta.drop = 1;
            } else if (room == 0) {
                if (meta.queue.flags & (bit<8>)POSTCARD_ECT != 0) {
                    meta.mark = 1;
                } else {
                    meta.drop = 1;
                }
            }
        } else if (limits && meta.queue.policy == (bit<8>)POLICY_TAIL_DROP && room == 0) {
            meta.drop = 1;
        }
    }
}

/* Decides about a packet that leaves a queue. `depth` is the queue without this packet, in the threshold's unit. */
control DepartureVerdict(in bit<32> depth, inout metadata_t meta) {
    bit<32> room;

    action compare() {
        room = meta.queue.threshold |-| depth;
        meta.drop = 0;
        meta.mark = 0;
    }

    apply {
        compare();
        if (meta.queue.policy == (bit<8>)POLICY_EGRESS_THRESHOLD && room == 0) {
            if (meta.policy.mark_instead_of_drop == 1 && meta.queue.flags & (bit<8>)POSTCARD_ECT != 0) {
                meta.mark = 1;
            } else {
                meta.drop = 1;
            }
        }
    }
}

#endif
