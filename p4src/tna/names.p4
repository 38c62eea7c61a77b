/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Includes the architecture of the Tofino generation to compile for, and defines names for shared and TNA controls.
 */
#ifndef TNA_NAMES_P4
#define TNA_NAMES_P4

#include <core.p4>
#if __TARGET_TOFINO__ == 1
#include <tna.p4>
#else
#include <t2na.p4>
#endif

#define PACKET_COUNTER(size) Counter<bit<64>, counter_index_t>(size, CounterType_t.PACKETS)
#define PORT_COUNTER Counter<bit<64>, PortId_t>(PORTS, CounterType_t.PACKETS_AND_BYTES)
/* Not lpm: the compiler accepts no constant entries in lpm tables. */
#define PREFIX ternary
typedef bit<16> counter_index_t;

/* A register that numbers the packets of each port. */
#define CARD_SEQUENCE(name) \
    Register<bit<32>, PortId_t>(PORTS) name; \
    RegisterAction<bit<32>, PortId_t, bit<32>>(name) next_##name = { \
        void apply(inout bit<32> next, out bit<32> number) { \
            number = next; \
            next = next + 1; \
        } \
    }
#define NEXT_CARD(name, port, number) number = next_##name.execute(port)

#endif
