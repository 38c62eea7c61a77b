# SPDX-License-Identifier: MIT
"""Frames for packet tests. scapy makes them, so that no code of ours defines a correct packet."""

from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw

SENDER_MAC, RECEIVER_MAC, COLLECTOR_MAC = "02:bf:00:00:00:01", "02:bf:00:00:00:02", "02:bf:00:00:00:03"
SWITCH_MAC = "02:bf:00:00:01:03"
SENDER, RECEIVER, COLLECTOR, SWITCH = "10.77.0.1", "10.77.0.2", "10.78.0.2", "10.78.0.1"
SENDER6, RECEIVER6 = "fd77::1", "fd77::2"

IP_OPTIONS = [b"\x07\x07\x04\x00\x00\x00\x00\x00"]  # record route, one empty slot, end of options


def ethernet(dst: str = RECEIVER_MAC) -> Ether:
    return Ether(src=SENDER_MAC, dst=dst)


def tcp(frame_bytes: int = 1514, ecn: int = 0, dst: str = RECEIVER_MAC, seq: int = 1, **ip_fields) -> bytes:
    """A TCP segment from port 30000 to 5201 in a frame of frame_bytes; ecn is the ECN field (2 = ECT(0), 3 = CE)."""
    packet = ethernet(dst) / IP(src=SENDER, dst=RECEIVER, tos=ecn, **ip_fields) / TCP(sport=30000, dport=5201, seq=seq)
    return filled(packet, frame_bytes)


def numbered(count: int) -> list[bytes]:
    """Full TCP segments with the sequence numbers 0 to count - 1, and the checksum of the first: scapy makes only that
    one, because it needs a millisecond for each.
    """
    first = tcp(seq=0)
    return [first[:38] + number.to_bytes(4, "big") + first[42:] for number in range(count)]


def tcp6(frame_bytes: int = 1514, ecn: int = 0) -> bytes:
    packet = ethernet() / IPv6(src=SENDER6, dst=RECEIVER6, tc=ecn) / TCP(sport=30000, dport=5201, seq=1)
    return filled(packet, frame_bytes)


def udp(frame_bytes: int = 60) -> bytes:
    return filled(ethernet() / IP(src=SENDER, dst=RECEIVER) / UDP(sport=4000, dport=4001), frame_bytes)


def udp6(frame_bytes: int = 70) -> bytes:
    return filled(ethernet() / IPv6(src=SENDER6, dst=RECEIVER6) / UDP(sport=9, dport=65535), frame_bytes)


def arp() -> bytes:
    return bytes(ethernet() / ARP(psrc=SENDER, pdst=RECEIVER))


def filled(packet, frame_bytes: int) -> bytes:
    return bytes(packet / Raw(bytes(index % 251 for index in range(frame_bytes - len(packet)))))
