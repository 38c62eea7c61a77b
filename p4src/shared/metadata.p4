/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Metadata of a packet: facts for its postcard, the policy of its queue, and the policy's decision.
 */
#ifndef SHARED_METADATA_P4
#define SHARED_METADATA_P4

/* On v1model a mirrored copy keeps the fields with this number: facts that the packet's own headers do not have. */
#define KEPT_BY_POSTCARDS 1

struct queue_facts_t {
    @field_list(KEPT_BY_POSTCARDS) bit<8> flags;            // POSTCARD_*, those known so far
    @field_list(KEPT_BY_POSTCARDS) bit<16> switch_id;
    @field_list(KEPT_BY_POSTCARDS) bit<16> ingress_port;
    @field_list(KEPT_BY_POSTCARDS) bit<16> egress_port;
    @field_list(KEPT_BY_POSTCARDS) bit<8> policy;           // POLICY_*
    @field_list(KEPT_BY_POSTCARDS) bit<32> card_seq;
    @field_list(KEPT_BY_POSTCARDS) bit<48> enqueue_switch_ns;
    @field_list(KEPT_BY_POSTCARDS) bit<48> sojourn_ns;
    @field_list(KEPT_BY_POSTCARDS) bit<32> depth_packets;   // on arrival, without this packet
    @field_list(KEPT_BY_POSTCARDS) bit<32> depth_bytes;
    @field_list(KEPT_BY_POSTCARDS) bit<32> threshold;
    @field_list(KEPT_BY_POSTCARDS) bit<16> packet_bytes;
    bit<32> depth_cells;            // Tofino only; 0 in the copies of v1model
    bit<8> depth_unit;              // POSTCARD_DEPTH_*; Tofino only; 0 (DEPTH_EXACT) in the copies of v1model
}

struct policy_t {
    bit<1> threshold_in_bytes;
    bit<1> mark_instead_of_drop;    // egress_threshold only: mark ECN-capable packets
    bit<32> hard_limit;             // ecn only: at this depth or above, ECN-capable packets are dropped, too
}

struct metadata_t {
    queue_facts_t queue;
    policy_t policy;
    bit<1> report;                  // this packet gets a postcard
    bit<16> ns_per_tick;            // ns in a tick of the target's clock: 1 on the soft switch, 1000 on BMv2
    bit<1> drop;                    // the policy's decision
    bit<1> mark;
}

#endif
