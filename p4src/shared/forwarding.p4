/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Layer 2 forwarding by destination address. The switch neither learns nor floods: a testbed knows its hosts,
 * and flooding would deliver more packets than were sent.
 */
#ifndef SHARED_FORWARDING_P4
#define SHARED_FORWARDING_P4

#include "headers.p4"
#include "sizes.p4"

control Forwarding(in headers_t hdr, out bit<9> port, out bool known) {
    action send_to(bit<9> egress_port) {
        port = egress_port;
        known = true;
    }

    action unknown_host() {
        port = 0;
        known = false;
    }

    table forward {
        key = { hdr.ethernet.dst_addr: exact; }
        actions = { send_to; unknown_host; }
        const default_action = unknown_host();
        size = HOSTS;
    }

    apply {
        port = 0;
        known = false;
        if (hdr.ethernet.isValid()) {
            forward.apply();
        }
    }
}

#endif
