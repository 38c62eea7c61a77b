/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * What all test programs begin with.
 */
#include <core.p4>
#include <v1model.p4>

header ethernet_h {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}
