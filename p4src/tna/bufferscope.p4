/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * bufferscope on Tofino (TNA, both generations): forward, let the traffic manager limit the queue, apply what is left of
 * the policy behind it, and send one postcard for every packet that came to a watched queue.
 *
 *      ingress -> traffic manager -> queue of the port ----> egress, ECN marks and departure drops
 *                        |                                      |
 *                 refused: deflected -> queue for such ----> egress, numbered apart and dropped
 *                                                               |
 *      collector <- egress, made a postcard <- traffic manager <- mirrored copies of both
 */
#include "names.p4"
#include "parsers.p4"
#include "ingress.p4"
#include "egress.p4"

Pipeline(IngressParser(), QueueIngress(), IngressDeparser(), EgressParser(), QueueEgress(), EgressDeparser()) pipe;
Switch(pipe) main;
