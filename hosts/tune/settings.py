# SPDX-License-Identifier: MIT
"""Which settings of a host matter to a buffer experiment, what they should be, and why.

Only settings of the network namespace are changed, never one that is the whole machine's (as net.core.rmem_max and
tcp_mem are: buffers that tune themselves are bounded by tcp_rmem and tcp_wmem alone).
"""

from __future__ import annotations

LEAST_BUFFER_BYTES = 16 << 20
# A socket buffer is counted in bytes of memory, not of payload: a segment takes up to twice its size, and the kernel
# wants room for two windows (tcp_sndbuf_expand and tcp_rcv_space_adjust in net/ipv4).
BUFFER_PER_WINDOW = 4

# Off: with them one frame of the measured link is several packets of the sender, or its checksum is not real.
OFFLOADS_OFF = ("tso", "gso", "gro", "lro", "tx", "rx")
# A device that cannot switch these off is still exact on the wire, as it computes real checksums.
OFFLOADS_MAY_STAY = ("tx", "rx")

# A segment at a time. Sockets have GSO whatever the device has, so TCP waits for up to a millisecond's worth of its
# pacing rate (since Linux 4.17: tcp_tso_autosize, tcp_tso_should_defer in net/ipv4/tcp_output.c) and hands it down as
# one burst, cut just before the device. One Reno flow at 200 Mb/s and 10 ms: the queue swings by 20 packets on each
# ACK clock cycle, and utilization after a loss is 0.1 below what the window allows.
GSO_MAX_SEGS = 1

SYSCTLS = {
    # what an earlier flow learnt about the path (ssthresh, RTT) must not be the start of the next one
    "net.ipv4.tcp_no_metrics_save": "1",
    # a sender that was held up for an RTO starts where it was: the queue is measured, not the scheduler
    "net.ipv4.tcp_slow_start_after_idle": "0",
    # both are the kernel's defaults, and every experiment takes them for granted: RTT samples, and selective ACKs
    "net.ipv4.tcp_timestamps": "1",
    "net.ipv4.tcp_sack": "1",
    # windows beyond 64 kB, and receive buffers that grow with the flow up to tcp_rmem
    "net.ipv4.tcp_window_scaling": "1",
    "net.ipv4.tcp_moderate_rcvbuf": "1",
    # the segment size is given by the MTU; probing would change it during a run
    "net.ipv4.tcp_mtu_probing": "0",
}

# Of each interface. Addresses are given by the experiment: nothing may wait for them, add to them or speak by itself.
IPV6_SYSCTLS = {
    "accept_dad": "0",
    "dad_transmits": "0",
    "accept_ra": "0",
    "autoconf": "0",
    "router_solicitations": "0",
}


def wanted_sysctls(interfaces: list[str], ecn: bool, window_bytes: int, reserved_ports: str | None) -> dict[str, str]:
    """Names as sysctl(8) has them, with what they should be.

    `window_bytes`: what one flow may have in flight, BDP and buffer together. `reserved_ports`: "FIRST-LAST", client
    ports that the kernel must not give to anybody else. tcp_rmem and tcp_wmem are given as their last number only.
    """
    most = str(max(LEAST_BUFFER_BYTES, BUFFER_PER_WINDOW * window_bytes))
    wanted = {
        **SYSCTLS,
        # 1 asks for ECN on connections out, 0 never has it: the default of 2 would leave it to the other end
        "net.ipv4.tcp_ecn": "1" if ecn else "0",
        "net.ipv4.tcp_rmem": most,
        "net.ipv4.tcp_wmem": most,
    }
    if reserved_ports is not None:
        wanted["net.ipv4.ip_local_reserved_ports"] = reserved_ports
    for interface in interfaces:
        # sysctl(8) writes dots within a name as slashes
        conf = f"net.ipv6.conf.{interface.replace('.', '/')}"
        wanted.update({f"{conf}.{name}": value for name, value in IPV6_SYSCTLS.items()})
    return wanted
