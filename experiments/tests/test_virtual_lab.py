# SPDX-License-Identifier: MIT
"""The runner's conclusions from a virtual machine's messages, without booting one."""

import json
from pathlib import Path

import pytest

from bufferscope.__main__ import main
from experiments.host import Host
from experiments.lab import virtual as virtual_lab
from experiments.lab import virtual_inside
from experiments.resolve import resolve
from experiments.resolved import Resolved
from virtual import RUN_DIRECTORY
from virtual.kernel import choice, config

HOST = Host(config.OF_LINUX, netem=True, clock="virtual")


def resolved(**given: object) -> Resolved:
    return resolve(given, HOST)


def test_pace__is_wall_time_divided_by_traffic_time(monkeypatch: pytest.MonkeyPatch) -> None:
    pace = virtual_lab.Pace()
    pace.hear({"phase": "making the network"})
    found = []
    for wall_s, traffic_s in ((1.0, 0.0), (2.0, 0.0), (3.0, 0.5), (3.0, 0.5), (5.0, 0.7), (13.0, 1.5)):
        monkeypatch.setattr(virtual_lab.time, "monotonic", lambda at=wall_s: at)
        pace.hear({"sample": {}, "traffic_s": traffic_s})
        found.append(pace.wall_s_per_traffic_s())
    assert found == [None, None, None, None, pytest.approx(10.0), pytest.approx(10.0)]
    assert pace.left_s(3.0) == 15.0


def test_outcome__has_the_users_paths(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    lines = [f"{RUN_DIRECTORY}: the disk is full", f"see {RUN_DIRECTORY}/logs/a.log"]
    (tmp_path / virtual_inside.OUTCOME).write_text(json.dumps({"lines": lines}))
    assert virtual_lab.outcome_lines(tmp_path) == [f"{tmp_path}: the disk is full", f"see {tmp_path}/logs/a.log"]


@pytest.fixture
def unbuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout in which no kernel was built yet."""
    monkeypatch.setattr(virtual_lab, "BUILD", tmp_path)
    monkeypatch.setattr(virtual_lab, "KERNEL", tmp_path / "linux")
    monkeypatch.setattr(virtual_lab, "KERNEL_JSON", tmp_path / "kernel.json")
    monkeypatch.setattr(virtual_lab, "prepare", lambda: pytest.fail("a kernel would be built"))
    return tmp_path


def test_cc__that_no_linux_has_is_refused_before_a_kernel_is_built(
    unbuilt: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for cc in ("nosuch", "cubic:1,rno:2"):
        assert main(["experiment", "CLOCK=virtual", f"CC={cc}"]) == 1
        assert capsys.readouterr().err.startswith(f"error: CC={cc} ")


def test_probe__of_a_tree_of_the_users_reads_what_it_has(unbuilt: Path) -> None:
    kconfig = unbuilt / "source/net/ipv4/Kconfig"
    kconfig.parent.mkdir(parents=True)
    kconfig.write_text('config TCP_CONG_NEW\n\ttristate "new"\n')
    (unbuilt / choice.FILE).write_text(json.dumps({choice.SOURCE: str(unbuilt / "source")}))
    assert virtual_lab.probe().congestion_controls == tuple(sorted({"cubic", "new", "reno", *config.OURS}))
    (unbuilt / choice.FILE).write_text(json.dumps({choice.SOURCE: str(unbuilt / "source.tar")}))
    assert virtual_lab.probe().congestion_controls is None
