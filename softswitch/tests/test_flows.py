# SPDX-License-Identifier: MIT
"""The core's settings of single flows, source ports and source addresses: delays and access links, to the ns."""

import random
import struct

from .core_driver import Core, departures, frame_to


def udp(src: str, dst: str, src_port: int, dst_port: int, to: int = 2, vlan: bool = False) -> bytes:
    addresses = b"".join(bytes(map(int, address.split("."))) for address in (src, dst))
    ip = b"\x45\0\0\x30\0\0\0\0\x40\x11\0\0" + addresses + struct.pack(">HHHH", src_port, dst_port, 28, 0) + bytes(20)
    kind = b"\x81\x00\x00\x05\x08\x00" if vlan else b"\x08\x00"
    return bytes.fromhex(f"02bf000000{to:02x}02bf00000001") + kind + ip


def test_flow__has_its_own_delay() -> None:
    for vlan in (False, True):
        core = Core()
        core.set("port set 2 delay 100", "flow set 10.0.0.1 10.0.0.2 udp 1000 2000 delay 50")
        core.receive(0, 1, udp("10.0.0.1", "10.0.0.2", 1000, 2000, vlan=vlan))
        core.receive(1, 1, udp("10.0.0.1", "10.0.0.2", 1000, 2001, vlan=vlan))
        core.receive(2, 1, udp("10.0.0.2", "10.0.0.1", 2000, 1000, vlan=vlan))
        outputs = core.run()
        assert [output.due_ns for output in outputs] == [101, 102, 150]
        assert [output.departure_ns for output in outputs] == [1, 2, 0]


def test_flow__ipv6_has_its_own_delay() -> None:
    core = Core()
    core.set("flow set fd77::1 fd77::2 6 80 443 delay 9")
    address = [bytes.fromhex(f"fd77{last:028x}") for last in (1, 2)]
    ip = b"\x60\0\0\0\0\x14\x06\x40" + b"".join(address) + struct.pack(">HH", 80, 443) + bytes(16)
    core.receive(0, 1, bytes.fromhex("02bf0000000202bf0000000186dd") + ip)
    assert [output.due_ns for output in core.run()] == [9]


def test_flow__frames_of_one_delay_stay_in_order() -> None:
    core = Core()
    core.set("flow set 10.0.0.1 10.0.0.2 17 1 1 delay 300", "flow set 10.0.0.1 10.0.0.2 17 2 2 delay 7")
    rng = random.Random(7)
    for index in range(300):
        flow = rng.randrange(3)
        core.receive(index // 3, 1, udp("10.0.0.1", "10.0.0.2", flow, flow) + bytes([index % 256]))
    outputs = core.run()
    assert [output.due_ns for output in outputs] == sorted(output.due_ns for output in outputs)
    for flow in range(3):
        mine = [output.departure_ns for output in outputs if output.frame[35] == flow]
        assert mine == sorted(mine)
        assert mine


def test_flows__one_request_sets_many() -> None:
    core = Core()
    core.set("flow set 10.0.0.1 10.0.0.2 udp 1 1 delay 300 ; 10.0.0.1 10.0.0.2 udp 2 2 access 688000000 delay 7")
    for port in (1, 2, 3):
        core.receive(0, 1, udp("10.0.0.1", "10.0.0.2", port, port))
    assert [output.due_ns for output in core.run()] == [0, 300, 1007]
    core.set("flow set 10.0.0.1 10.0.0.2 udp 1 1 ; 10.0.0.1 10.0.0.2 udp 2 2 access 0")  # omitted settings stay
    for port in (1, 2):
        core.receive(2000, 1, udp("10.0.0.1", "10.0.0.2", port, port))
    assert [output.due_ns for output in core.run()] == [2007, 2300]


def test_requests__with_an_error_anywhere_change_nothing() -> None:
    core = Core(flows=3)
    good = "flow set 10.0.0.1 10.0.0.2 udp 1 1 delay 300"
    for request, named in (
        (f"{good} ;", "address ''"),
        (f"{good} ; 10.0.0.1 10.0.0.2 udp 2 65536", "port '65536'"),
        (f"{good} ; 10.0.0.1 10.0.0.2 udp 2 2 speed 5", "'speed'"),
        (f"{good} ; 10.0.0.1 10.0.0.2 udp 2 2 access 1", "access '1'"),
        (f"{good} ; 10.0.0.1 10.0.0.2 icmp 2 2", "protocol 'icmp'"),
        ("flow set any", "address 'any'"),
        ("flow set 10.0.0.1 any tcp 1 2", "'2'"),
        ("flow set 10.0.0.1 any link 1025", "link '1025'"),
        (good + "".join(f" ; 10.0.0.1 10.0.0.2 udp {port} 1 delay 300" for port in (2, 3, 4)), "flow table full"),
        (good + "".join(f" ; 10.0.0.{host} any delay 1" for host in (1, 2, 3)), "flow table full"),
        ("link set 0 access 1000", "link '0'"),
        ("link set 1 access 999", "access '999'"),
        ("link clear", "'clear'"),
        ("program now", "'now'"),
    ):
        (reply,) = core.control(request)
        assert reply.startswith("error "), request
        assert named in reply, request
    core.receive(0, 1, udp("10.0.0.1", "10.0.0.2", 1, 1))
    assert [output.due_ns for output in core.run()] == [0]
    core.set(good + "".join(f" ; 10.0.0.{host} any delay 1" for host in (1, 2)))  # the table is still empty
    core.set("flow set 10.0.0.1 10.0.0.2 udp 1 1 delay 5")  # a full table takes changes


def test_address__settings_apply_to_its_flows_that_have_none() -> None:
    core = Core()
    core.set("flow set 10.0.0.1 any delay 50 ; 10.0.0.1 10.0.0.2 udp 1 1 delay 300 ; 10.0.0.3 any delay 7")
    for number, (source, port) in enumerate((("10.0.0.1", 1), ("10.0.0.1", 2), ("10.0.0.2", 1), ("10.0.0.3", 9))):
        core.receive(number, 1, udp(source, "10.0.0.2", port, port))
    core.receive(4, 1, udp("10.0.0.1", "10.0.0.2", 3, 3).replace(b"\x40\x11", b"\x40\x01"))  # ICMP: no flow
    assert [output.due_ns for output in core.run()] == [2, 4, 10, 51, 300]
    core.set("flow clear")
    core.receive(1000, 1, udp("10.0.0.1", "10.0.0.2", 2, 2))
    assert [output.due_ns for output in core.run()] == [1000]


def test_source_port__comes_after_its_flows_and_before_its_address() -> None:
    core = Core()
    core.set("flow set 10.0.0.1 any udp 5201 delay 20 ; 10.0.0.1 any delay 50 ; 10.0.0.1 10.0.0.2 udp 5201 1 delay 300")
    core.receive(0, 1, udp("10.0.0.1", "10.0.0.2", 5201, 1))
    for number, to in enumerate(("10.0.0.2", "10.0.0.9"), 1):
        core.receive(number, 1, udp("10.0.0.1", to, 5201, 2))
    core.receive(3, 1, udp("10.0.0.1", "10.0.0.2", 5202, 1))
    core.receive(4, 1, udp("10.0.0.2", "10.0.0.1", 5201, 1))
    assert [output.due_ns for output in core.run()] == [4, 21, 22, 53, 300]


def test_link__is_shared_by_addresses_with_delays_of_their_own() -> None:
    core = Core()
    core.set(
        "link set 1024 access 7000000000",
        "flow set 10.0.0.1 any link 1024 delay 5 ; 10.0.0.2 any link 1024 delay 9",
    )
    for index in range(7):  # 688 bits at 7 Gbit/s: 98 2/7 ns
        core.receive(0, 1, udp(f"10.0.0.{1 + index % 2}", "10.0.0.9", index, 1))
    assert [output.due_ns for output in core.run()] == [688 * k // 7 + (5, 9)[(k - 1) % 2] for k in range(1, 8)]
    core.set("link set 1024 access 0")
    core.receive(5000, 1, udp("10.0.0.1", "10.0.0.9", 1, 1))
    assert departures(core.run()) == [5000]


def test_access__of_a_port_spreads_arrivals_that_have_no_rate_of_their_own() -> None:
    core = Core()
    core.set("port set 1 access 9920000000", "flow set 10.0.0.1 10.0.0.2 udp 1 1 access 688000000")
    core.receive(0, 1, udp("10.0.0.1", "10.0.0.2", 1, 1))  # 62 + 24 bytes: 1000 ns
    core.receive(0, 1, udp("10.0.0.1", "10.0.0.2", 1, 1))
    for port, arrival_ns in ((1, 0), (1, 0), (1, 250), (3, 0)):
        core.receive(arrival_ns, port, frame_to(2))
    assert departures(core.run()) == [0, 100, 200, 350, 1000, 2000]
