/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Replaces tna/names.p4: defines for v1model the names that the TNA controls use.
 */
#ifndef TNA_NAMES_P4
#define TNA_NAMES_P4

#define V1MODEL_VERSION 20200408
#include <core.p4>
#include <v1model.p4>
#include "../../shared/sizes.p4"

typedef bit<10> MirrorId_t;
typedef bit<3> MirrorType_t;

struct ingress_intrinsic_metadata_t {
    PortId_t ingress_port;
}

struct ingress_intrinsic_metadata_from_parser_t {
    bit<48> global_tstamp;
}

struct ingress_intrinsic_metadata_for_deparser_t {
    bit<3> drop_ctl;
}

struct ingress_intrinsic_metadata_for_tm_t {
    PortId_t ucast_egress_port;
    bit<1> deflect_on_drop;
}

struct egress_intrinsic_metadata_t {
    PortId_t egress_port;
    bit<19> enq_qdepth;
    bit<19> deq_qdepth;
#if __TARGET_TOFINO__ == 1
    bit<18> enq_tstamp;
    bit<18> deq_timedelta;
#else
    bit<32> enq_tstamp;
    bit<32> deq_timedelta;
#endif
    bit<1> deflection_flag;
    bit<16> pkt_length;
}

struct egress_intrinsic_metadata_from_parser_t {
    bit<48> global_tstamp;
}

struct egress_intrinsic_metadata_for_deparser_t {
    bit<3> drop_ctl;
    MirrorType_t mirror_type;
    bit<1> mirror_io_select;
}

struct egress_intrinsic_metadata_for_output_port_t {
    bit<1> unused;
}

#define PACKET_COUNTER(size) counter<counter_index_t>(size, CounterType.packets)
#define PORT_COUNTER counter<PortId_t>(PORTS, CounterType.packets_and_bytes)
#define PREFIX lpm
typedef bit<16> counter_index_t;

#define CARD_SEQUENCE(name) register<bit<32>, PortId_t>(PORTS) name
#define NEXT_CARD(name, port, number) name.read(number, port); name.write(port, number + 1)

#endif
