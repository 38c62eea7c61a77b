/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Lengths of headers and frames, and bytes of a frame on an Ethernet link (IEEE 802.3), as in lib/frames.py. The
 * switch's frame lengths exclude the FCS.
 */
#ifndef LIB_FRAMES_H
#define LIB_FRAMES_H

enum {
	ETHERNET_BYTES = 14,
	VLAN_BYTES = 4,
	IPV4_BYTES = 20, /* without options */
	IPV6_BYTES = 40,
	UDP_BYTES = 8,
	LEAST_FRAME_BYTES = 60, /* shorter frames are padded; without the FCS */
	FCS_BYTES = 4,
	IFG_BYTES = 20, /* preamble 7, start delimiter 1, shortest gap 12 */
	WIRE_EXTRA_BYTES = FCS_BYTES + IFG_BYTES,
	LEAST_IP_BYTES = LEAST_FRAME_BYTES - ETHERNET_BYTES,
};

#endif
