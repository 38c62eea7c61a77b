# SPDX-License-Identifier: MIT
"""switch.yaml: the example is valid; each mistake is one line with place, problem and allowed values."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from controlplane.desired import desired
from controlplane.fake import FakeSwitch
from controlplane.policy import TailDrop, Unit
from controlplane.spec import load
from controlplane.spec_file import SpecFileError
from controlplane.switch import Queue

EXAMPLE = Path(__file__).parents[1] / "switch.example.yaml"


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "switch.yaml"
    path.write_text(text)
    return path


def lines(path: Path, switch: FakeSwitch | None = None) -> list[str]:
    """The errors of the file, without the file's name."""
    with pytest.raises(SpecFileError) as refusal:
        _read(path, switch)
    assert all(line.startswith(f"{path}: ") and "\n" not in line for line in refusal.value.lines)
    return [line.removeprefix(f"{path}: ") for line in refusal.value.lines]


def _read(path: Path, switch: FakeSwitch | None) -> None:
    spec = load(path)
    assert switch is not None, "the file is valid"
    desired(spec, switch, str(path))


def test_example__has_the_settings_of_the_lab(fake: FakeSwitch) -> None:
    wanted = desired(load(EXAMPLE), fake, "example")
    assert wanted.ports[2].policy == TailDrop(163, Unit.PACKETS)
    assert wanted.ports[2].queue == Queue(rate_bps=200_000_000, limit_packets=20_000)
    assert wanted.ports[2].switch_id == 1
    assert wanted.notes == ["ports.2.policy.threshold: 1bdp is 162.549 full packets: 163"]
    assert wanted.forwarding is not None
    assert len(wanted.forwarding) == 3
    assert wanted.collector is not None
    assert (wanted.collector.port, wanted.collector.dst_port) == (3, 5577)


HEAD = "target: fake\naddress: test\nmtu: 1500\nrtt: 10ms\n"
CARDS = "collector: {port: '3', switch_mac: '02:bf:00:00:01:03', collector_mac: '02:bf:00:00:00:03', "


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("address: x\n", "target is missing"),
        (HEAD.replace("fake", "sotf"), "target=sotf is not known; did you mean soft?"),
        (HEAD.replace("test", "''"), "address= is empty"),
        (HEAD + "speed: 1\n", "speed is not known; allowed: version, target,"),
        (HEAD + "version: 9\n", "version=9 is a version that this bufferscope does not read; allowed: 1"),
        (HEAD.replace("1500", "15"), "mtu=15 is out of bounds; allowed: 64 to 10000"),
        (HEAD.replace("10ms", "10"), "rtt=10 is a number without a unit; allowed: ns, us, ms, s as in 10ms"),
        (HEAD + "ports: 5\n", "ports=5 is not a mapping"),
        (HEAD + "ports: {'2': fast}\n", "ports.2=fast is not a mapping"),
        (HEAD + "ports: {'2': {rate: 0bit}}\n", "ports.2.rate=0bit is zero; allowed: above zero, in bit"),
        (HEAD + "ports: {'2': {rat: 1bit}}\n", "ports.2.rat is not known; did you mean rate?"),
        (HEAD + "ports: {'2': {fec: none}}\n", "ports.2 has fec or auto_negotiation without a speed"),
        (HEAD + "ports: {'2': {postcards: 65536}}\n", "ports.2.postcards=65536 is neither a switch id from 0 to 65535"),
        (
            HEAD + "ports: {'2': {policy: {mode: taildrop, threshold: 1p}}}\n",
            "ports.2.policy.mode=taildrop is not known; did you mean",
        ),
        (HEAD + "ports: {'2': {policy: {mode: ecn, threshold: 1p}}}\n", "ports.2.policy needs a hard_limit"),
        (HEAD + "ports: {'2': {policy: {mode: tail-drop}}}\n", "ports.2.policy needs a threshold"),
        (
            HEAD + "ports: {'2': {policy: {mode: tail-drop, threshold: 5q}}}\n",
            "ports.2.policy.threshold=5q has the unknown unit 'q'; allowed: p as in 166p; b, kb",
        ),
        (HEAD + "forwarding: {'02:bf': '2'}\n", "forwarding.02:bf is not a MAC address"),
        (
            HEAD + "forwarding: {'02:bf:00:00:00:0a': '1', '02:bf:00:00:00:0A': '2'}\n",
            "forwarding has 02:bf:00:00:00:0a twice, in two spellings",
        ),
        (
            HEAD.replace("1500", "9" * 5000),
            f"mtu={'9' * 100}... (5000 characters) is not a whole number; allowed: 64 to",
        ),
        (
            HEAD + CARDS + "switch_addr: 10.0.0.300, collector_addr: 10.0.0.2}\n",
            "collector.switch_addr=10.0.0.300 is not an IPv4",
        ),
        (HEAD + "mtu: 9000\n", "is not YAML: mtu is given twice in line 5"),
        (HEAD + "ports: &a {'2': {}}\nforwarding: *a\n", "is not YAML: a spec has no aliases; replace *a in line 6"),
        (
            HEAD + "ports: !!python/name:os.system x\n",
            "is not YAML: a spec has no tags; remove !!python/name:os.system",
        ),
        (HEAD + "ports: {'2': {'\x1b[2J': 1}}", "is not YAML: "),
        ("- 1\n", "is not a mapping; see controlplane/switch.example.yaml"),
        ("target: [fake\n", "is not YAML: "),
    ],
)
def test_load__one_mistake_is_one_line(tmp_path: Path, text: str, says: str) -> None:
    (line,) = lines(written(tmp_path, text))
    assert line.startswith(says)
    assert line.isprintable()


def test_load__reports_every_mistake(tmp_path: Path) -> None:
    path = written(tmp_path, HEAD + "ports: {'2': {rate: 5q, limit: 5ms}, '3': {policy: {mode: x}}}\n")
    assert [line.split("=")[0] for line in lines(path)] == ["ports.2.rate", "ports.2.limit", "ports.3.policy.mode"]


def test_load__a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    assert lines(tmp_path / "absent.yaml") == ["cannot be read: No such file or directory"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("ports: {'9': {}}\n", "ports.9: the switch has no port '9'; it has 1, 2, 3"),
        ("forwarding: {'02:bf:00:00:00:01': eth0}\n", "forwarding.02:bf:00:00:00:01: the switch has no port 'eth0'"),
        ("ports: {'2': {speed: 10gbit}}\n", "ports.2.speed: fake has no cables"),
        (
            "ports: {'2': {limit: 5p, policy: {mode: tail-drop, threshold: 5p}}}\n",
            "ports.2.limit: the queue itself holds 5 packets and drops the rest silently, before the policy does",
        ),
        ("ports: {'2': {limit: 5c}}\n", "ports.2.limit: 5c: fake limits a queue in packets or bytes"),
        (
            "ports: {'2': {policy: {mode: tail-drop, threshold: 5c}}}\n",
            "ports.2.policy.threshold: is in cells, which fake",
        ),
        (
            "ports: {'2': {policy: {mode: tail-drop, threshold: 1bdp}}}\n",
            "ports.2.policy.threshold: needs the rate of the",
        ),
        (
            "ports: {'2': {policy: {mode: ecn, threshold: 9p, hard_limit: 5p}}}\n",
            "ports.2.policy.hard_limit: 5 is below",
        ),
        (
            "ports: {'2': {policy: {mode: ecn, threshold: 9p, hard_limit: 9kb}}}\n",
            "ports.2.policy.hard_limit: is in bytes",
        ),
        (
            "ports: {'2': {policy: {mode: tail-drop, threshold: 4294967296p}}}\n",
            "ports.2: fake switch at test: table queue_policy, key 2: action tail_drop: threshold 4294967296 does not"
            " fit in 32 bits",
        ),
        (
            "ports: {'2': {policy: {mode: tail-drop, threshold: 1p}, postcards: 1}}\n",
            "collector: is missing: some port sends postcards, which need a receiver",
        ),
        (
            "ports: {'3': {policy: {mode: tail-drop, threshold: 1p}, postcards: 1}}\n"
            + CARDS
            + "switch_addr: 10.0.0.3, collector_addr: 10.0.0.2}\n",
            "collector.port: the queue of port 3 has postcards itself, so postcards to the collector would wait in the "
            "queue that they report; allowed: a port without postcards",
        ),
        (
            "ports: {'2': {policy: {mode: tail-drop, threshold: 1p}, postcards: 1}}\n"
            + CARDS.replace("3", "9", 1)
            + "switch_addr: 10.0.0.3, collector_addr: 10.0.0.2}\n",
            "collector.port: the switch has no port '9'; it has 1, 2, 3",
        ),
        ("ports: {'\"\\e[2J\"': {}}\n".replace("'", ""), "ports.\\x1b[2J: the switch has no port"),
    ],
)
def test_desired__an_impossible_setting_is_one_line(tmp_path: Path, fake, text: str, says: str) -> None:
    (line,) = lines(written(tmp_path, HEAD + text), fake)
    assert line.startswith(says)


def test_desired__postcards_of_an_unwatched_queue_are_refused(tmp_path: Path, fake: FakeSwitch) -> None:
    text = HEAD + "ports: {'2': {postcards: 1}}\n" + CARDS + "switch_addr: 10.0.0.3, collector_addr: 10.0.0.2}\n"
    assert lines(written(tmp_path, text), fake) == [
        "ports.2.postcards: asks for postcards of a queue that no policy watches: give it a policy"
    ]


PIECES = (b"", b"\x00", b"\x1b[2J", b"\xff", b"- ", b"*a", b"&a ", b"{", b": ", b"\n", b"!!x ", b"0")


def test_load__of_broken_files_ends_in_printable_lines(tmp_path: Path, fake: FakeSwitch) -> None:
    """Bytes of the example are changed, removed and inserted: the result loads, or the errors are printable lines."""
    rng = random.Random(1)
    path = tmp_path / "switch.yaml"
    refusals = []
    for _ in range(400):
        text = bytearray(EXAMPLE.read_bytes())
        for _ in range(rng.choice((1, 1, 3, 30))):
            at = rng.randrange(len(text))
            text[at : at + rng.choice((0, 1, 8))] = rng.choice(PIECES)
        path.write_bytes(text)
        try:
            _read(path, fake)
        except SpecFileError as error:
            refusals.append(error.lines)
    assert 100 < len(refusals) < 400
    assert all(refusals)
    assert all(line.startswith(str(path)) and line.isprintable() for lines in refusals for line in lines)
