/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * What shared controls use under one name and each architecture calls its own way.
 */
#ifndef V1MODEL_NAMES_P4
#define V1MODEL_NAMES_P4

#define PACKET_COUNTER(size) counter(size, CounterType.packets)
#define PREFIX lpm
typedef bit<32> counter_index_t;

#endif
