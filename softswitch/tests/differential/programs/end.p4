/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The end of programs that both switches execute. The last statements of ingress and egress count packets: when the
 * counts of both switches agree, both have done all that they do with a packet. Programs with checksums define theirs.
 */
#ifndef CHECKSUMS
control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control Update(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}
#endif

control In(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    I() program;
    counter(1, CounterType.packets) ingresses;
    apply {
        program.apply(hdr, meta, std);
        ingresses.count(0);
    }
}

control Out(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    E() program;
    counter(1, CounterType.packets) egresses;
    apply {
        program.apply(hdr, meta, std);
        egresses.count(0);
    }
}

control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(P(), Verify(), In(), Out(), Update(), D()) main;
