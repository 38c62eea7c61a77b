# SPDX-License-Identifier: MIT
"""The settings of a host that affect a buffer experiment, their values, and the reasons.

Only settings of the network namespace are changed, none of the whole machine. net.core.rmem_max and tcp_mem stay:
tcp_rmem and tcp_wmem alone bound autotuned buffers.
"""

from __future__ import annotations

LEAST_BUFFER_BYTES = 16 << 20
# A socket buffer counts bytes of memory, not of payload: a segment takes up to twice its size, and the kernel provides
# for two windows (tcp_sndbuf_expand and tcp_rcv_space_adjust in net/ipv4).
BUFFER_PER_WINDOW = 4

# Switched off, unless OFFLOADS=on: with these offloads one frame on the measured link holds several segments, or has no
# valid checksum.
OFFLOADS_OFF = ("tso", "gso", "gro", "lro", "tx", "rx")
# Checksum offloads may stay on: a device that cannot switch them off computes valid checksums, so the wire is exact.
OFFLOADS_MAY_STAY = ("tx", "rx")

# One segment at a time. Sockets use GSO even if the device has none (since Linux 4.17): TCP collects the data of up to
# 1 ms at its pacing rate (tcp_tso_autosize, tcp_tso_should_defer in net/ipv4/tcp_output.c). The data goes down as one
# burst, segmented just before the device. With one Reno flow at 200 Mb/s and 10 ms the queue then swings by 20 packets
# in each ACK clock cycle, and utilization after a loss is 0.1 below the value that the window allows.
GSO_MAX_SEGS = 1

SYSCTLS = {
    # a new flow must not start with an earlier flow's path metrics (ssthresh, RTT)
    "net.ipv4.tcp_no_metrics_save": "1",
    # a sender that the scheduler held up for an RTO keeps its window: the queue is measured, not the scheduler
    "net.ipv4.tcp_slow_start_after_idle": "0",
    # a closed connection must stay in TIME-WAIT: without it the kernel answers the peer's last segments with a RST
    "net.ipv4.tcp_max_tw_buckets": "1048576",
    # the kernel's defaults: RTT samples, and selective ACKs unless the spec has SACK=off (tcp_options.py)
    "net.ipv4.tcp_timestamps": "1",
    "net.ipv4.tcp_sack": "1",
    # a retransmitted SYN asks for ECN, too: SYNs are not ECN-capable, so a queue that marks may drop the first one
    "net.ipv4.tcp_ecn_fallback": "0",
    # windows beyond 64 kB, and receive buffers that grow with the flow up to tcp_rmem
    "net.ipv4.tcp_window_scaling": "1",
    "net.ipv4.tcp_moderate_rcvbuf": "1",
    # the MTU determines the segment size; probing would change it during a run
    "net.ipv4.tcp_mtu_probing": "0",
}

# Per interface. The experiment sets all addresses: no duplicate detection, no autoconfiguration, no solicitations.
IPV6_SYSCTLS = {
    "accept_dad": "0",
    "dad_transmits": "0",
    "accept_ra": "0",
    "autoconf": "0",
    "router_solicitations": "0",
}


DEFAULT_CC = "net.ipv4.tcp_congestion_control"  # of sockets that choose none; writing it loads a missing module
# Rate of a paced flow, in percent of its window per RTT. The first sysctl is for windows below half of the
# slow-start threshold, the second for larger windows.
PACING_SYSCTLS = ("net.ipv4.tcp_pacing_ss_ratio", "net.ipv4.tcp_pacing_ca_ratio")


def wanted_sysctls(
    interfaces: list[str],
    ecn: bool,
    window_bytes: int,
    reserved_ports: str | None,
    buffer_bytes: int | None = None,
    unsent_bytes: int | None = None,
) -> dict[str, str]:
    """{name as in sysctl(8): wanted value}; of tcp_rmem and tcp_wmem the last number only.

    `window_bytes`: most bytes of a flow in flight, BDP and buffer together. `reserved_ports`: "FIRST-LAST", client
    ports that the kernel must not assign to other sockets. `buffer_bytes`: the largest socket buffer, in place of the
    size that follows from `window_bytes`. `unsent_bytes`: a socket accepts no more data while it holds this many unsent
    bytes.
    """
    most = str(buffer_bytes or max(LEAST_BUFFER_BYTES, BUFFER_PER_WINDOW * window_bytes))
    wanted = {
        **SYSCTLS,
        # 1: outgoing connections request ECN; 0: no ECN. The default of 2 leaves the choice to the peer.
        "net.ipv4.tcp_ecn": "1" if ecn else "0",
        "net.ipv4.tcp_rmem": most,
        "net.ipv4.tcp_wmem": most,
    }
    if unsent_bytes is not None:
        wanted["net.ipv4.tcp_notsent_lowat"] = str(unsent_bytes)
    if reserved_ports is not None:
        wanted["net.ipv4.ip_local_reserved_ports"] = reserved_ports
    for interface in interfaces:
        # sysctl(8) writes dots within a name as slashes
        conf = f"net.ipv6.conf.{interface.replace('.', '/')}"
        wanted.update({f"{conf}.{name}": value for name, value in IPV6_SYSCTLS.items()})
    return wanted
