/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * What a policy of your own (docs/your-aqm.md) sees of a packet and of its queue, and what it decides. Your file has
 *
 *     control Arrival(in policy_input_t seen, inout policy_verdict_t verdict)
 *     control Departure(in policy_input_t seen, inout policy_verdict_t verdict)
 *
 * State that both controls share is a register that your file declares outside of its controls. A policy with several
 * queues says so before a control: @scheduler("drr", 2, 1514, 13626) (docs/your-aqm.md).
 */
#ifndef V1MODEL_POLICY_INTERFACE_P4
#define V1MODEL_POLICY_INTERFACE_P4

struct policy_input_t {
    bit<48> now_ns;             // at arrival: when the packet came; at departure: when its last bit left
    bit<48> sojourn_ns;         // from arrival to departure; 0 at arrival
    bit<32> depth_packets;      // length of the queue without this packet
    bit<32> depth_bytes;
    bit<16> packet_bytes;       // with Ethernet header, without FCS
    bit<2> ecn;                 // the ECN field: 0 is not ECN-capable, 3 is CE
    bit<1> full;                // at arrival: the buffer (BUF) is full; the packet is dropped whatever you decide
    bit<9> port;                // of the queue
    bit<48> wait_ns;            // at departure: from arrival until the transmission began; 0 at arrival
    bit<32> flow_hash;          // CRC-32 of addresses, protocol and ports; at departure still that of the arrival
}

struct policy_verdict_t {
    bit<1> drop;
    bit<1> mark;                // sets CE; drops a packet that is not ECN-capable
    bit<32> value;              // goes into the postcard. At departure it is still the value of the arrival
    bit<16> queue;              // at arrival: number of the queue that takes the packet (@scheduler). At departure still that
}

#endif
