/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * A capture file of taps: pcap with times in ns (libpcap's pcap-savefile(5)), in the byte order of its writer.
 */
#ifndef SOFTSWITCH_PCAP_H
#define SOFTSWITCH_PCAP_H

#include <stdint.h>

enum {
	PCAP_SNAP_BYTES = 128, /* Ethernet, IPv6 and TCP with all options have 114 */
	PCAP_ETHERNET = 1,
};

struct pcap_header {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t zone, accuracy, snap_bytes, link_type;
};

struct pcap_frame {
	uint32_t seconds, nanoseconds, captured_bytes, frame_bytes;
};

static const struct pcap_header pcap_header = {0xa1b23c4d, 2, 4, 0, 0, PCAP_SNAP_BYTES, PCAP_ETHERNET};

#endif
