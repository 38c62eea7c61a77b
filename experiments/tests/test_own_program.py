# SPDX-License-Identifier: MIT
"""A whole program of the user's, with its tables, ports and addresses. Our own program stands for another's here: with
its own postcards off, those of the core must be the same.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bufferscope.__main__ import main
from controlplane.schema_files import BUILD
from experiments.plan.configure import configure
from experiments.plan.run_plan import plan_run
from experiments.plan.switches import Switches
from experiments.spec.topology import RECEIVER, SENDER
from experiments.tests.resolving import problems, resolved
from model.experiment import Source
from p4src.tests import frames
from p4src.tests.under_test import CoreControl
from softswitch.tests.core_driver import Core
from wire.formats import POSTCARD

PROGRAM = str(BUILD / "bufferscope.json")
TABLES = """
table_add forward send_to 00:00:00:00:01:01 => {sender}
table_add forward send_to 00:00:00:00:02:02 => {receiver}
table_add queue_policy tail_drop {receiver} => 100 0
set_queue_rate 100 {receiver}
set_queue_depth 7
"""
ADDRESSES = "00:00:00:00:01:01=sender, 00:00:00:00:02:02=receiver"
LINK = {"rate": "100mbit", "rtt": "10ms", "buf": "1bdp", "clock": "virtual"}


def tables(directory: Path, sender: int = 1, receiver: int = 2) -> str:
    path = directory / "commands.txt"
    path.write_text(TABLES.format(sender=sender, receiver=receiver))
    return str(path)


def configured(directory: Path, ports: tuple[int, int, int] = (1, 2, 3), **given: str) -> tuple[Core, Switches]:
    given |= {"tables": tables(directory, *ports[:2]), "ports": f"{ports[0]},{ports[1]}", "addresses": ADDRESSES}
    spec = resolved(p4=PROGRAM, **LINK, **given)
    plan = plan_run(spec, 1)
    core = Core("p4", ports, frame_bytes=9216)
    switch = CoreControl(core)
    switches = Switches(switch, switch, plan.settings.ports, watched_by_core=plan.settings.is_watched_by_core)
    configure(switches, plan.settings)
    return core, switches


def cards(core: Core, sender: int = 1, collector: int = 3, count: int = 30) -> list[dict[str, int]]:
    for number in range(count):
        core.receive(1_000_000 + number, sender, frames.tcp(1514, seq=number, dst=RECEIVER.mac))
    return [POSTCARD.decode(out.frame[42:]) for out in core.run() if out.port == collector]


def test_program__gets_the_labs_links_its_tables_and_postcards_of_the_core(tmp_path: Path) -> None:
    core, switches = configured(tmp_path)
    port = switches.scheduled().port(2)
    assert (port["rate"], port["limit_packets"]) == (100_000_000, resolved(**LINK).buffer_packets)
    made = cards(core)
    ours = Core("p4", (1, 2, 3), frame_bytes=9216)
    switch = CoreControl(ours)
    configure(Switches(switch, switch), plan_run(resolved(**LINK), 1).settings)
    assert made == [card | {"policy": 0, "threshold": 0} for card in cards(ours)]
    counters = switches.read_counters()
    assert counters["arrivals"][2].packets == counters["postcards_made"][3].packets == 30
    assert switches.queue_length() == 0
    assert switches.bottleneck_link == 2


def test_ports__of_the_switch_have_the_programs_numbers(tmp_path: Path) -> None:
    core, switches = configured(tmp_path, (7, 3, 4))
    assert [card["egress_port"] for card in cards(core, sender=7, collector=4)] == [3] * 30
    assert switches.bottleneck_link == 3
    assert switches.counters()["arrivals"] == {"3": {"packets": 30, "bytes": 30 * 1514}}


def test_scheduler__gives_the_bottleneck_its_queues(tmp_path: Path) -> None:
    _, switches = configured(tmp_path, scheduler="strict")
    assert switches.scheduled().request("queue", "show", 2)[:2] == ["scheduler strict", "queues 32"]


def test_program__that_forwards_nothing_has_only_drops_at_arrival(tmp_path: Path) -> None:
    core, _ = configured(tmp_path)
    core.set(f"table delete forward {int(RECEIVER.mac.replace(':', ''), 16)}")
    flags = {card["flags"] & 0x09 for card in cards(core)}
    assert flags == {POSTCARD.const["POSTCARD_DROPPED"] | POSTCARD.const["POSTCARD_AT_INGRESS"]}


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"p4": "template", "ports": "1,2"}, "ports"),
        ({"scheduler": "strict"}, "scheduler"),
        ({"p4": PROGRAM, "addresses": "10.0.0.1=sender"}, "addresses"),
        ({"p4": PROGRAM, "target": "bmv2", "scheduler": "strict"}, "scheduler"),
    ],
)
def test_key__that_has_no_meaning_is_refused(given: dict[str, str], key: str) -> None:
    assert key.upper() in problems(**given)


def test_check__says_of_tables_what_a_run_would(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [PROGRAM, f"TABLES={tables(tmp_path)}"]
    assert main(["p4", "check", *given, "PORTS=1,2", f"ADDRESSES={ADDRESSES.replace(' ', '')}"]) == 0
    assert "commands.txt: 3 requests" in capsys.readouterr().out
    (tmp_path / "commands.txt").write_text("table_add forward send_to 5 => 7000\n")
    assert main(["p4", "check", *given]) == main(["experiment", f"P4={PROGRAM}", *given[1:]]) == 1
    (line, again) = capsys.readouterr().err.splitlines()
    assert line == again
    assert "commands.txt:1: table_add: " in line
    (tmp_path / "commands.txt").write_text("".join(f"mirroring_add {number} 1\n" for number in range(2, 70)))
    assert main(["p4", "check", *given]) == 1
    assert capsys.readouterr().err.startswith("error: commands.txt:65: mirroring_add: ")


def test_program__on_bmv2_is_recorded_and_needs_no_collector(tmp_path: Path) -> None:
    link = {**LINK, "buf": "9bdp"}
    plan = plan_run(resolved(p4=PROGRAM, target="bmv2", tables=tables(tmp_path, 7, 3), ports="7,3", **link), 1)
    assert (plan.recorded_ns or 0) > 2 * 9 * 10_000_000
    assert "collectors" not in plan.setup["run_groups"].split(":")
    assert plan.setup["bmv2_ports"][:2] == ["7=to_sender", "3=to_receiver"]
    limit = {port: queue.limit_packets for port, queue in plan.settings.queues.items()}
    assert limit[3] == resolved(**link).buffer_packets != limit[7]


def test_addresses__that_the_file_does_not_have_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("table_add forward send_to 10:00:00:00:00:01 => 1")
    assert "ADDRESSES" in problems(p4=PROGRAM, tables=str(path), addresses="10:0:0:0:0:1=sender")


def test_addresses__are_the_labs_in_the_programs_form(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("table_add forward send_to 10:00:00:00:00:01 => 1")
    spec = resolved(p4=PROGRAM, tables=str(path), addresses="10:00:00:00:00:01=sender", **LINK)
    program = plan_run(spec, 1).settings.program
    assert program is not None
    assert program.requests[0].text.split()[3] == hex(int(SENDER.mac.replace(":", ""), 16))


@pytest.mark.parametrize("file", ["../../mine.json", "/etc/mine.json", "..", ""])
def test_source__of_a_stored_run_stays_in_its_directory(file: str) -> None:
    with pytest.raises(ValueError, match="without a directory"):
        Source(name="mine", file=file, sha256="")
