/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Defines the names that shared controls use: each architecture has its own terms for them.
 */
#ifndef V1MODEL_NAMES_P4
#define V1MODEL_NAMES_P4

#define PACKET_COUNTER(size) counter(size, CounterType.packets)
#define PREFIX lpm
typedef bit<32> counter_index_t;

#endif
