# SPDX-License-Identifier: MIT
"""The real binary between real network namespaces."""

import pwd
import random
import shutil
import signal
import stat
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.policy import TailDrop
from controlplane.switch import Collector, SwitchError
from hosts.tests.patience import SECONDS, wait_until
from hosts.tests.processes import privileges_of, refused

from .core_driver import BUILD, make
from .ring_lab import HOSTS, Lab, Switch, command, mac

pytestmark = pytest.mark.software


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    make("all")
    opened = Lab()
    yield opened
    opened.close()


@pytest.fixture
def switch(lab: Lab) -> Iterator[Switch]:
    with Switch(lab) as started:
        with started.client() as control:
            for port in HOSTS:
                control.set_forwarding(mac(port), port)
        yield started


def ethernet(to: int, kind: int, payload: bytes) -> bytes:
    addresses = bytes.fromhex((mac(to) + mac(1)).replace(":", ""))
    return addresses + struct.pack(">H", kind) + payload


def exchange(lab: Lab, *frames: bytes) -> list[bytes]:
    """Sends frames from host 1, one after the other. Returns the frames that host 2 receives, as on the wire."""
    while lab.ports.receive(0):  # frames of earlier tests
        pass
    received: list[bytes] = []
    for number, frame in enumerate(frames, 1):
        lab.ports.send(1, frame)
        while len(received) < number and (arrived := lab.ports.receive(SECONDS)):
            received += [frame for port, frame in arrived if port == 2]
    return received


def test_forwarding__frames_come_out_unchanged(lab: Lab, switch: Switch) -> None:
    """Frames of every length and of any content, with VLAN tags, which the kernel hands over beside the frame."""
    rng = random.Random(1)
    lengths = [14, 15, 20, 60, 61, 64, 127, 128, 1500, 1514, 1515, 4096, 8999, 9000, 9013, 9014]
    frames = [ethernet(2, 0x88B5, rng.randbytes(length - 14)) for length in lengths]
    kinds = (0x0800, 0x86DD, 0x0806, 0x1234)
    frames += [ethernet(2, rng.choice(kinds), rng.randbytes(rng.randrange(200))) for _ in range(300)]
    untagged = ethernet(2, 0x0800, bytes(100))
    for tags in ("81000005", "8100e00f", "88a80064810000c8"):
        frames.append(untagged[:12] + bytes.fromhex(tags) + untagged[12:])
    assert exchange(lab, *frames) == frames


def captured(path: Path) -> list[tuple[int, int, bytes]]:
    """(ns, length, first bytes) of each frame of a capture."""
    data, at, result = path.read_bytes(), 24, []
    while at < len(data):
        seconds, ns, kept, length = struct.unpack_from("<IIII", data, at)
        at += 16 + kept
        result.append((seconds * 10**9 + ns, length, data[at - kept : at]))
    return result


def test_taps__have_the_headers_of_each_frame_at_its_times(lab: Lab, tmp_path: Path) -> None:
    """Both directions, before and behind the queues; all are there once the counters are read."""
    sides = [tmp_path / name for name in ("before", "after")]
    frames = [ethernet(2, 0x88B5, bytes([number % 256]) * (20 + number % 300)) for number in range(200)]
    answer = mac(1) + mac(2)
    taps = ("--tap", f"1={sides[0]}", "--tap", f"2={sides[1]}")
    with Switch(lab, *taps, "--drop-user", "nobody") as switch, switch.client() as control:
        assert privileges_of(switch.process.pid) == ({pwd.getpwnam("nobody").pw_uid}, 0)
        for port in HOSTS:
            control.set_forwarding(mac(port), port)
        control.set_port(2, rate=10_000_000)
        assert exchange(lab, *frames) == frames
        lab.ports.send(2, bytes.fromhex(answer.replace(":", "")) + b"\x88\xb5" + bytes(60))
        wait_until(lambda: control.stats()["port.1.tx_frames"] == 1)
        stats = control.stats()
        before, after = map(captured, sides)
    assert (stats["taps_frames"], stats["taps_lost"]) == (2 * (len(frames) + 1), 0)
    assert [frame for _, _, frame in before[:-1]] == [frame for _, _, frame in after[:-1]] == [f[:128] for f in frames]
    assert [length for _, length, _ in after] == [*map(len, frames), 74]
    free = 0
    for (came, length, _), (left, _, _) in zip(before[:-1], after[:-1], strict=True):
        free = max(came, free) + (max(length, 60) + 24) * 800
        assert left == free
    assert [before[-1][2]] == [after[-1][2]]
    assert after[-1][0] <= before[-1][0]
    assert abs(before[0][0] - time.time_ns()) < 600 * 10**9


def test_taps__that_cannot_be_written_are_counted(lab: Lab) -> None:
    with Switch(lab, "--tap", "1=/dev/full") as switch, switch.client() as control:
        control.set_forwarding(mac(2), 2)
        frame = ethernet(2, 0x88B5, bytes(46))
        assert exchange(lab, frame) == [frame]
        stats = control.stats()
        assert (stats["taps_frames"], stats["taps_lost"]) == (0, 1)
        assert "writing /dev/full" in switch.end()[1]


def test_burst__of_10007_frames_loses_nothing(lab: Lab) -> None:
    count = 10_007
    frame = ethernet(2, 0x88B5, bytes(46))
    # The ring has room for all frames (a slot fits the longest frame), so a slow machine loses none.
    room = ("--ring-mib", "128", "--packets", "16384")
    with Switch(lab, *room) as switch, switch.client() as control:
        control.set_forwarding(mac(2), 2)
        control.set_collector(Collector(3, "02:bf:00:00:01:03", mac(3), "10.78.0.1", "10.78.0.2", 5577, 5577))
        control.set_policy(2, TailDrop(1_000_000))
        control.set_postcards(2, 1)
        control.set_port(2, delay=1_000_000)
        before = {port: lab.received_frames(port) for port in (2, 3)}
        for _ in range(count):
            lab.ports.send(1, frame)
        wait_until(lambda: control.stats()["port.3.tx_frames"] == count)
        wait_until(lambda: control.stats()["port.2.tx_frames"] == count)
        stats = control.stats()
        assert {port: lab.received_frames(port) - before[port] for port in (2, 3)} == {2: count, 3: count}
        assert control.counter("arrivals")[2].packets == count
        assert control.counter("postcards_made")[3].packets == count
    losses = ("rx_ring_drops", "tx_errors", "queue_drops", "oversize")
    assert {name: stats[f"port.{port}.{name}"] for port in HOSTS for name in losses} == dict.fromkeys(losses, 0)
    assert (stats["pool_exhausted"], stats["clock_steps"], stats["packets_used"]) == (0, 0, 0)


def test_ring__overflow_is_counted(lab: Lab) -> None:
    with Switch(lab, "--ring-mib", "1") as switch, switch.client() as control:
        switch.process.send_signal(signal.SIGSTOP)
        for _ in range(500):  # a MiB holds about a hundred slots for frames of MTU 9000
            lab.ports.send(1, ethernet(2, 0x88B5, bytes(46)))
        switch.process.send_signal(signal.SIGCONT)
        wait_until(lambda: sum(control.stats()[f"port.1.{name}"] for name in ("rx_frames", "rx_ring_drops")) == 500)
        assert control.stats()["port.1.rx_ring_drops"] > 300


def test_receive__frames_longer_than_a_slot_are_counted(lab: Lab) -> None:
    with Switch(lab, "--frame-bytes", "1500") as switch, switch.client() as control:
        control.set_forwarding(mac(2), 2)
        lab.ports.send(1, ethernet(2, 0x88B5, bytes(2000)))
        assert [len(frame) for frame in exchange(lab, ethernet(2, 0x88B5, b"x" * 1486))] == [1500]
        assert control.stats()["port.1.oversize"] == 1


def test_lateness__counts_every_frame_and_compares_gaps_while_the_link_is_busy(lab: Lab, switch: Switch) -> None:
    with switch.client() as control:
        control.set_port(2, rate=10_000_000, delay=1_000_000)  # 1 ms and more per frame
        start = time.monotonic()
        for _ in range(50):
            lab.ports.send(1, ethernet(2, 0x88B5, bytes(1236)))
        wait_until(lambda: control.stats()["port.2.tx_frames"] == 50)
        assert time.monotonic() - start > 0.05
        stats, lateness = control.stats(), control.lateness(2)
        control.reset_lateness()
        assert (control.lateness(2), control.stats()["departures.2"]) == ([], 0)
    assert stats["departures.2"] == sum(count for _, count in lateness) == 50
    assert stats["gap_frames.2"] == 49
    assert stats["virtual_span_ns.2"] == 49 * (1236 + 14 + 24) * 800
    assert abs(stats["real_span_ns.2"] - stats["virtual_span_ns.2"]) <= max(edge_ns for edge_ns, _ in lateness)


def test_end__is_clean_and_kill_leaves_nothing_that_matters(lab: Lab, tmp_path: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        with Switch(lab) as switch:
            assert stat.S_IMODE(switch.control_path.stat().st_mode) == 0o600
            status, errors = switch.end(number)
            assert (status, len(errors.splitlines())) == (0, 1)
            assert " port.1.rx_frames=0 " in errors
            assert not switch.control_path.exists()
    with Switch(lab, directory=tmp_path) as switch:
        wait_until(lambda: lab.promiscuity(1) == 1)
        switch.process.kill()
        switch.process.wait()
        wait_until(lambda: lab.promiscuity(1) == 0)
    with Switch(lab, directory=tmp_path) as again, again.client() as control:
        assert control.about()["ports"] == "1 2 3"


def test_start__what_is_in_the_way_is_named_and_stays(lab: Lab, switch: Switch, tmp_path: Path) -> None:
    message = refused(*command(lab), "--control", str(switch.control_path), "--port", "1=port1")
    assert f"{switch.control_path}: in use" in message
    with switch.client() as control:
        assert control.about()["name"] == "bufferscope"
    path = tmp_path / "s"
    words = [*command(lab), "--control", path, "--port", "1=port1"]
    assert "opening absent: " in refused(*words, "--port", "2=absent")
    assert not path.exists()
    path.write_text("precious")
    assert f"{path}: exists and is not a socket" in refused(*words)
    assert "has more than 107 characters" in refused(*command(lab), "--control", f"/{'x' * 107}", "--port", "1=port1")
    assert path.read_text() == "precious"


def test_start__offloads_are_refused(lab: Lab, tmp_path: Path) -> None:
    lab.set_offload(2, "gro", True)
    try:
        message = refused(*command(lab), "--control", str(tmp_path / "s"), "--port", "1=port1", "--port", "2=port2")
        assert "ethtool -K port2 gro off" in message
        with Switch(lab, "--allow-offloads"):
            pass
    finally:
        lab.set_offload(2, "gro", False)


def test_start__without_privilege_is_an_error() -> None:
    make("all")
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:  # other users cannot open pytest's directories
        Path(directory).chmod(0o755)
        program = shutil.copy(BUILD / "softswitch", directory)
        words = [program, "--control", f"{directory}/s", "--port", "1=lo"]
        done = subprocess.run(words, capture_output=True, text=True, user="nobody", timeout=60)
    assert done.returncode == 1
    first, *others = done.stderr.splitlines()
    assert first == "softswitch: opening packet sockets: no CAP_NET_RAW: run softswitch as root"
    assert all(line.startswith("profiling:") for line in others)  # a build that counts coverage cannot store it


def test_drop_user__keeps_nothing_and_forwards(lab: Lab) -> None:
    with Switch(lab, "--drop-user", "nobody") as switch, switch.client() as control:
        assert privileges_of(switch.process.pid) == ({pwd.getpwnam("nobody").pw_uid}, 0)
        assert "\nGroups:\t\n" in Path(f"/proc/{switch.process.pid}/status").read_text().replace(" \n", "\n")
        control.set_forwarding(mac(2), 2)
        frames = [ethernet(2, 0x88B5, bytes(60))] * 3
        assert exchange(lab, *frames) == frames


def test_control__too_many_clients_get_an_error(switch: Switch) -> None:
    clients = [switch.client() for _ in range(16)]
    try:
        for client in clients:
            client.about()
        with pytest.raises(SwitchError):
            switch.client().about()
    finally:
        for client in clients:
            client.close()
    with switch.client() as control:
        assert control.about()["name"] == "bufferscope"
