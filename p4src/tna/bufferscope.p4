/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * bufferscope on Tofino (TNA, both generations): the traffic manager limits the queue; egress applies the rest of the
 * policy (ECN, departure drops). If postcards are switched on, every packet that came to a watched queue gets one.
 *
 *      ingress -> traffic manager -> queue of the port ----> egress, ECN marks and departure drops
 *                        |                                      |
 *                 refused: deflected -> deflection queue --> egress, numbered apart and dropped
 *                                                               |
 *      collector <- egress, made a postcard <- traffic manager <- mirrored copies of queued and refused packets
 */
#include "names.p4"
#include "parsers.p4"
#include "ingress.p4"
#include "egress.p4"

Pipeline(IngressParser(), QueueIngress(), IngressDeparser(), EgressParser(), QueueEgress(), EgressDeparser()) pipe;
Switch(pipe) main;
