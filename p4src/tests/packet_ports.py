# SPDX-License-Identifier: MIT
"""Links of a switch under test, and frames through packet sockets, one for each port of the switch."""

import itertools
import os
import select
import socket
import struct
import subprocess
import time

from lib.tests.namespace import inside

ETH_P_ALL = 3  # include/uapi/linux/if_ether.h
SOL_PACKET, PACKET_AUXDATA, PACKET_IGNORE_OUTGOING = 263, 8, 23  # include/uapi/linux/if_packet.h
TP_STATUS_VLAN_VALID, TP_STATUS_VLAN_TPID_VALID = 1 << 4, 1 << 6
AUXDATA = struct.Struct("=IIIHHHH")  # struct tpacket_auxdata: status, len, snaplen, mac, net, vlan_tci, vlan_tpid
SO_RCVBUFFORCE = 33
RECEIVE_BUFFER_BYTES = 32 << 20
MAX_FRAME_BYTES = 1 << 16
MAC_ADDRESSES_BYTES = 12
OFFLOADS = ("tso", "gso", "gro", "tx", "rx")
_numbers = itertools.count()  # one for each set of links of this process: the names of namespaces must differ


class Links:
    """A network namespace in which the switch's port N is portN, linked to hostN; `ports` are the hosts' ends."""

    def __init__(self, ports: tuple[int, ...], mtu_bytes: int) -> None:
        self.namespace = f"suite{os.getpid()}n{next(_numbers)}"
        try:
            run("ip", "netns", "add", self.namespace)
            self.run("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
            self.run("ip", "link", "set", "lo", "up")
            for port in ports:
                names = (f"port{port}", f"host{port}")
                peer = ("type", "veth", "peer", "name", names[1], "mtu", mtu_bytes)
                self.run("ip", "link", "add", names[0], "mtu", mtu_bytes, *peer)
                for name in names:
                    self.run("ethtool", "-K", name, *(word for offload in OFFLOADS for word in (offload, "off")))
                    self.run("ip", "link", "set", name, "up")
            self.ports = inside(self.namespace, lambda: PacketPorts({port: f"host{port}" for port in ports}))
        except BaseException:
            self.close()
            raise

    def command(self, *words: object) -> list[str]:
        """A command line that runs `words` in the namespace."""
        return ["ip", "netns", "exec", self.namespace, *map(str, words)]

    def run(self, *words: object) -> str:
        return run(*self.command(*words))

    def close(self) -> None:
        subprocess.run(["ip", "netns", "delete", self.namespace], capture_output=True)


def run(*words: object) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


class PacketPorts:
    """`interfaces`: port of the switch -> name of the interface at the other end of its link.

    Construct it in the network namespace of the interfaces; the sockets stay there.
    """

    def __init__(self, interfaces: dict[int, str]) -> None:
        self._sockets: dict[int, socket.socket] = {}
        try:
            for port, name in interfaces.items():
                opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
                self._sockets[port] = opened
                opened.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
                opened.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
                opened.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES)
                opened.bind((name, ETH_P_ALL))
                opened.setblocking(False)
        except OSError:
            self.close()
            raise
        self._ports = {opened.fileno(): port for port, opened in self._sockets.items()}
        self._poll = select.poll()
        for number in self._ports:
            self._poll.register(number, select.POLLIN)

    def close(self) -> None:
        for opened in self._sockets.values():
            opened.close()

    def send(self, port: int, frame: bytes) -> None:
        """Raises OSError if the interface refuses the frame (shorter than 14 bytes, longer than its MTU)."""
        self._sockets[port].send(frame)

    def receive(self, timeout_s: float) -> list[tuple[int, bytes]]:
        """(port, frame) of all frames that have arrived. Waits for the first one; [] after `timeout_s`."""
        frames = []
        for number, _ in self._poll.poll(timeout_s * 1000):
            port = self._ports[number]
            while (frame := self._one(self._sockets[port])) is not None:
                frames.append((port, frame))
        return frames

    def until(self, done_s: float) -> list[tuple[int, bytes]]:
        """`receive`, with a timeout that ends at `done_s` of time.monotonic()."""
        return self.receive(max(0.0, done_s - time.monotonic()))

    @staticmethod
    def _one(opened: socket.socket) -> bytes | None:
        try:
            frame, messages, _, _ = opened.recvmsg(MAX_FRAME_BYTES, socket.CMSG_SPACE(AUXDATA.size))
        except BlockingIOError:
            return None
        for level, kind, data in messages:
            if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
                return _with_tag(frame, data)
        return frame


def _with_tag(frame: bytes, auxdata: bytes) -> bytes:
    """The frame with its VLAN tag, which the kernel removes from received frames."""
    status, *_, tag, tpid = AUXDATA.unpack(auxdata[: AUXDATA.size])
    if not status & TP_STATUS_VLAN_VALID:
        return frame
    ether_type = tpid if status & TP_STATUS_VLAN_TPID_VALID else 0x8100
    return frame[:MAC_ADDRESSES_BYTES] + struct.pack(">HH", ether_type, tag) + frame[MAC_ADDRESSES_BYTES:]
