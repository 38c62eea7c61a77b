# SPDX-License-Identifier: MIT
"""The lab's network inside a cell: a namespace for each host and for the switch, a veth pair from each host to the
switch, fixed addresses. A switch without propagation delay has another namespace behind it, the delay line. With
SWITCH=driver no veth is made: the switch is in the kernel and has made the hosts' interfaces.

    sender --1 switch 2-- receiver        sender --1 bmv2_switch 2--to_switch line to_receiver-- receiver
                 3-- collector                   3-- collector

Names, ports and addresses of the lab are defined here. Ansible's lab inventory repeats names and ports, and a test
compares them. Addresses and neighbours are static, without ARP, duplicate address detection and router solicitation:
the queue holds packets of the experiment only.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from experiments.machine.cell import NETNS
from lib import syscalls
from lib.errors import RunError

SWITCH = "switch"  # the soft switch; another target's switch is called TARGET_switch
LINE = "line"
INTERFACE = "eth0"
SUBNET_BITS = 16  # the sender may have 1000 more addresses (experiments/spec/transfers.py)
IPV6_MIN_MTU_BYTES = 1280  # RFC 8200 section 5
POSTCARD_SOURCE = "10.78.0.1"
COLLECTOR_MTU_BYTES = 1500


@dataclass(frozen=True)
class LabHost:
    """A host of the lab: a namespace, connected to the switch port `port`. `ipv6` is '' if the host has none."""

    name: str
    port: int
    ipv4: str
    ipv6: str = ""

    @property
    def switch_interface(self) -> str:
        return f"to_{self.name}"

    @property
    def driver_interface(self) -> str:
        """The driver's name of the host's end of the link (softswitch/driver)."""
        return f"bsw{self.port}"

    @property
    def mac(self) -> str:
        return f"02:bf:00:00:00:{self.port:02x}"

    @property
    def switch_mac(self) -> str:
        return f"02:bf:00:00:01:{self.port:02x}"


SENDER = LabHost("sender", 1, "10.77.0.1", "fd77::1")
RECEIVER = LabHost("receiver", 2, "10.77.0.2", "fd77::2")
COLLECTOR = LabHost("collector", 3, "10.78.0.2")
HOSTS = (SENDER, RECEIVER, COLLECTOR)
# The delay line's ports, and its interface towards the switch. Its other interface has the same name as the switch's
# interface towards the receiver.
LINE_TO_SENDER, LINE_TO_RECEIVER = 1, 2
LINE_INTERFACE = "to_switch"
QDISC_PACKETS = 1_000_000  # more than any window


@dataclass(frozen=True)
class Network:
    """`switch` is the switch's namespace. With `line` a delay line stands behind the switch. With `driver` the kernel
    is the switch and has made the hosts' interfaces; otherwise veths lead to a process. `sender_bps` bounds the rate at
    which the sender's frames enter its veth.
    """

    mtu_bytes: int
    switch: str = SWITCH
    line: bool = False
    driver: bool = False
    sender_bps: int | None = None
    sender_addresses: tuple[str, ...] = ()  # beside SENDER.ipv4

    @property
    def namespaces(self) -> tuple[str, ...]:
        return (self.switch, *([LINE] if self.line else []), *(host.name for host in HOSTS))


def netns(name: str) -> Path:
    """The file of a namespace of the lab."""
    return NETNS / name


def inside(name: str, *command: str) -> list[str]:
    """The command that runs `command` in a namespace of the lab."""
    return ["nsenter", f"--net={netns(name)}", *command]


def build(network: Network) -> None:
    """Makes the whole network, up and ready. For a fresh cell: nothing is undone if it fails."""
    _ip([f"netns add {name}" for name in network.namespaces])
    with_ipv6 = network.mtu_bytes >= IPV6_MIN_MTU_BYTES
    for name in network.namespaces:
        _silence_ipv6(name, keep=name in (SENDER.name, RECEIVER.name) and with_ipv6)
    mtus_bytes = {host: COLLECTOR_MTU_BYTES if host is COLLECTOR else network.mtu_bytes for host in HOSTS}
    if network.driver:
        for host in HOSTS:
            _ip(_driver_lines(host, mtus_bytes[host]))
    else:
        _ip([_veth(host, mtus_bytes[host], _neighbour(host, network)) for host in HOSTS])
        # A switch such as BMv2 has its control plane on the loopback interface.
        _ip(["link set lo up", *(f"link set {host.switch_interface} up" for host in HOSTS if host is not RECEIVER)],
            network.switch)  # fmt: skip
        _ip([f"link set {RECEIVER.switch_interface} up"], _neighbour(RECEIVER, network))
        if network.line:
            _join_line(network)
    for host in HOSTS:
        _ip(_host_lines(host, bool(host.ipv6) and with_ipv6, network.sender_addresses), host.name)
    if network.sender_bps is not None:
        queue = ["netem", "rate", f"{network.sender_bps}bit", "limit", str(QDISC_PACKETS)]
        _run(["tc", "-netns", SENDER.name, "qdisc", "add", "dev", INTERFACE, "root", *queue], "", SENDER.name)


def silence(*names: str) -> None:
    """Discards all frames that hosts send from now on. Hosts still receive, so a frame on its way is not lost."""
    for name in names:
        _run(["tc", "-netns", name, "qdisc", "replace", "dev", INTERFACE, "root", "blackhole"], "", name)


def _neighbour(host: LabHost, network: Network) -> str:
    """The namespace at the other end of a host's veth."""
    return LINE if host is RECEIVER and network.line else network.switch


def _veth(host: LabHost, mtu_bytes: int, neighbour: str) -> str:
    return (
        f"link add {INTERFACE} netns {host.name} address {host.mac} mtu {mtu_bytes} type veth "
        f"peer name {host.switch_interface} netns {neighbour} address {host.switch_mac} mtu {mtu_bytes}"
    )


def _join_line(network: Network) -> None:
    """Connects the switch's port towards the receiver with the delay line."""
    _ip([
        f"link add {RECEIVER.switch_interface} netns {network.switch} mtu {network.mtu_bytes} type veth "
        f"peer name {LINE_INTERFACE} netns {LINE} mtu {network.mtu_bytes}"
    ])  # fmt: skip
    _ip([f"link set {RECEIVER.switch_interface} up"], network.switch)
    _ip([f"link set {LINE_INTERFACE} up"], LINE)


def _driver_lines(host: LabHost, mtu_bytes: int) -> list[str]:
    name = host.driver_interface
    return [
        f"link set {name} address {host.mac} mtu {mtu_bytes}",
        f"link set {name} netns {host.name} name {INTERFACE}",
    ]


def _host_lines(host: LabHost, with_ipv6: bool, sender_addresses: tuple[str, ...]) -> list[str]:
    lines = ["link set lo up", f"link set {INTERFACE} up", f"address add {host.ipv4}/{SUBNET_BITS} dev {INTERFACE}"]
    if with_ipv6:
        lines.append(f"address add {host.ipv6}/64 dev {INTERFACE} nodad")
    peers = [other for other in (SENDER, RECEIVER) if other is not host and host is not COLLECTOR]
    for peer in peers:
        lines.append(f"neighbour add {peer.ipv4} lladdr {peer.mac} dev {INTERFACE} nud permanent")
        if with_ipv6:
            lines.append(f"neighbour add {peer.ipv6} lladdr {peer.mac} dev {INTERFACE} nud permanent")
    if host is SENDER:
        lines += [f"address add {address}/{SUBNET_BITS} dev {INTERFACE}" for address in sender_addresses]
    if host is RECEIVER:
        lines += [
            f"neighbour add {address} lladdr {SENDER.mac} dev {INTERFACE} nud permanent" for address in sender_addresses
        ]
    if host is COLLECTOR:
        lines.append(f"neighbour add {POSTCARD_SOURCE} lladdr {host.switch_mac} dev {INTERFACE} nud permanent")
    return lines


def _silence_ipv6(name: str, keep: bool) -> None:
    """Must run before interfaces exist: later the kernel has already sent solicitations and reports."""
    settings = {"accept_dad": 0, "accept_ra": 0, "router_solicitations": 0, "addr_gen_mode": 1}
    with syscalls.in_network_namespace(netns(name)):
        default = Path("/proc/sys/net/ipv6/conf/default")
        if not default.exists():
            return  # a kernel without IPv6 has nothing to silence
        for setting, value in (settings if keep else {"disable_ipv6": 1}).items():
            (default / setting).write_text(str(value))


def _ip(lines: list[str], name: str = "") -> None:
    """Runs many ip(8) commands in one process. Raises RunError with ip's message."""
    _run(["ip", *(["-netns", name] if name else []), "-batch", "-"], "\n".join(lines) + "\n", name)


def _run(command: list[str], lines: str, name: str) -> None:
    result = subprocess.run(command, input=lines, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise RunError(f"set up the lab's network{name and f' in {name}'}: {' '.join(result.stderr.split())}")
