# SPDX-License-Identifier: MIT
"""switch.yaml: the example is valid; each mistake is one line that names its place."""

import random
from pathlib import Path

from controlplane.desired import desired
from controlplane.policy import TailDrop, Unit
from controlplane.spec import SpecFileError, load
from controlplane.switch import Queue
from controlplane.tests.local import LocalSwitch

EXAMPLE = Path(__file__).parents[1] / "switch.example.yaml"


def errors(path: Path, switch: LocalSwitch) -> list[str]:
    """The errors of the file, without the file's name; [] if it is valid."""
    lines: tuple[str, ...] | list[str] = ()
    try:
        desired(load(path), switch, str(path))
    except SpecFileError as refusal:
        lines = refusal.lines or [""]
    assert all(line.startswith(f"{path}: ") and line.isprintable() for line in lines)
    return [line.removeprefix(f"{path}: ") for line in lines]


def test_example__has_the_settings_of_the_lab(local: LocalSwitch) -> None:
    wanted = desired(load(EXAMPLE), local, "example")
    assert wanted.ports[2].policy == TailDrop(163, Unit.PACKETS)
    assert wanted.ports[2].queue == Queue(rate_bps=200_000_000, limit_packets=20_000)
    assert wanted.ports[2].switch_id == 1
    assert wanted.notes == ["ports.2.policy.threshold: 1bdp is 162.549 full packets: 163"]
    assert wanted.forwarding is not None
    assert len(wanted.forwarding) == 3
    assert wanted.collector is not None
    assert (wanted.collector.port, wanted.collector.dst_port) == (3, 5577)


HEAD = "target: local\naddress: test\nmtu: 1500\nrtt: 10ms\n"
CARDS = "collector: {port: '3', switch_mac: '02:bf:00:00:01:03', collector_mac: '02:bf:00:00:00:03', "
ADDRESSES = "switch_addr: 10.0.0.3, collector_addr: 10.0.0.2}\n"
WATCHED = "policy: {mode: tail-drop, threshold: 1p}, postcards: 1}}\n"
MISTAKES = {  # the file -> the place that its only error names
    "address: x\n": "target",
    HEAD.replace("local", "sotf"): "target=sotf",
    HEAD + "speed: 1\n": "speed",
    HEAD + "version: 9\n": "version=9",
    HEAD.replace("1500", "15"): "mtu=15",
    HEAD.replace("1500", "9" * 5000): f"mtu={'9' * 100}... (5000 characters)",
    HEAD.replace("10ms", "10"): "rtt=10",
    HEAD + "ports: {'2': fast}\n": "ports.2=fast",
    HEAD + "ports: {'2': {rate: 0bit}}\n": "ports.2.rate=0bit",
    HEAD + "ports: {'2': {fec: none}}\n": "ports.2",
    HEAD + "ports: {'2': {postcards: 65536}}\n": "ports.2.postcards=65536",
    HEAD + "ports: {'2': {policy: {mode: taildrop, threshold: 1p}}}\n": "ports.2.policy.mode=taildrop",
    HEAD + "ports: {'2': {policy: {mode: ecn, threshold: 1p}}}\n": "ports.2.policy needs a hard_limit",
    HEAD + "ports: {'2': {policy: {mode: tail-drop, threshold: 5q}}}\n": "ports.2.policy.threshold=5q",
    HEAD + "forwarding: {'02:bf': '2'}\n": "forwarding.02:bf",
    HEAD + "forwarding: {'02:bf:00:00:00:0a': '1', '02:bf:00:00:00:0A': '2'}\n": "forwarding has 02:bf:00:00:00:0a",
    HEAD + CARDS + "switch_addr: 10.0.0.300, collector_addr: 10.0.0.2}\n": "collector.switch_addr=10.0.0.300",
    HEAD + "mtu: 9000\n": "is not YAML: mtu is given twice in line 5",
    "- 1\n": "is not a mapping",
    "target: [local\n": "is not YAML",
    # Mistakes that only the switch can tell:
    HEAD + "ports: {'9': {}}\n": "ports.9",
    HEAD + "forwarding: {'02:bf:00:00:00:01': eth0}\n": "forwarding.02:bf:00:00:00:01: the switch has no port 'eth0'",
    HEAD + "ports: {'2': {speed: 10gbit}}\n": "ports.2.speed",
    HEAD + "ports: {'2': {limit: 5p, policy: {mode: tail-drop, threshold: 5p}}}\n": "ports.2.limit: the queue itself",
    HEAD + "ports: {'2': {policy: {mode: tail-drop, threshold: 5c}}}\n": "ports.2.policy.threshold",
    HEAD + "ports: {'2': {policy: {mode: tail-drop, threshold: 1bdp}}}\n": "ports.2.policy.threshold: needs the rate",
    HEAD + "ports: {'2': {policy: {mode: ecn, threshold: 9p, hard_limit: 5p}}}\n": "ports.2.policy.hard_limit: 5",
    HEAD + "ports: {'2': {policy: {mode: tail-drop, threshold: 4294967296p}}}\n": "ports.2: local switch at test: ",
    HEAD + "ports: {'2': {" + WATCHED: "collector: is missing",
    HEAD + "ports: {'3': {" + WATCHED + CARDS + ADDRESSES: "collector.port: the queue of port 3",
    HEAD + "ports: {'2': {" + WATCHED + CARDS.replace("3", "9", 1) + ADDRESSES: "collector.port: the switch has no",
    HEAD + "ports: {'2': {postcards: 1}}\n" + CARDS + ADDRESSES: "ports.2.postcards",
    HEAD + 'ports: {"\\e[2J": {}}\n': "ports.\\x1b[2J",
}


def test_one_mistake__is_one_line(tmp_path: Path, local: LocalSwitch) -> None:
    path = tmp_path / "switch.yaml"
    wrong = []
    for text, place in MISTAKES.items():
        path.write_text(text)
        said = errors(path, local)
        if len(said) != 1 or not said[0].startswith(place):
            wrong.append((place, said))
    assert wrong == []
    assert errors(tmp_path / "absent.yaml", local) == ["cannot be read: No such file or directory"]


def test_load__reports_every_mistake(tmp_path: Path, local: LocalSwitch) -> None:
    path = tmp_path / "switch.yaml"
    path.write_text(HEAD + "ports: {'2': {rate: 5q, limit: 5ms}, '3': {policy: {mode: x}}}\n")
    said = [line.split("=")[0] for line in errors(path, local)]
    assert said == ["ports.2.rate", "ports.2.limit", "ports.3.policy.mode"]


PIECES = (b"", b"\x00", b"\x1b[2J", b"\xff", b"- ", b"*a", b"&a ", b"{", b": ", b"\n", b"!!x ", b"0")


def test_load__of_broken_files_ends_in_printable_lines(tmp_path: Path, local: LocalSwitch) -> None:
    """Bytes of the example are changed, removed and inserted: the result loads, or the errors are printable lines."""
    rng = random.Random(1)
    path = tmp_path / "switch.yaml"
    refused = 0
    for _ in range(400):
        text = bytearray(EXAMPLE.read_bytes())
        for _ in range(rng.choice((1, 1, 3, 30))):
            at = rng.randrange(len(text))
            text[at : at + rng.choice((0, 1, 8))] = rng.choice(PIECES)
        path.write_bytes(text)
        refused += bool(errors(path, local))
    assert 100 < refused < 400
