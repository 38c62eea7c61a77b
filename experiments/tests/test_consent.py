# SPDX-License-Identifier: MIT
"""The cost of an experiment is said before it starts, is about right, and needs a yes if it is high."""

import resource
from pathlib import Path

import pytest

from bufferscope.__main__ import main
from experiments import consent, cost, disk
from experiments.host import Host
from experiments.lab import virtual as virtual_lab
from experiments.resolve import resolve
from experiments.resolved import Resolved
from lib.errors import RunError
from virtual.kernel import config

HOST = Host(config.OF_LINUX, netem=True, clock="virtual")
TIME_WITHIN, DISK_WITHIN = 2.5, 1.5  # processors differ by a factor of 2
SMALL = {"cc": "cubic", "flows": "4", "rate": "100mbit", "rtt": "10ms", "duration": "2s", "warmup": "1s"}
LARGE = {"cc": "reno", "flows": "2", "rate": "1gbit", "rtt": "10ms", "duration": "1.5s", "warmup": "0.5s"}


def resolved(**given: object) -> Resolved:
    return resolve(given, HOST)


def test_cost__is_said_and_a_low_one_needs_no_yes(capsys: pytest.CaptureFixture[str]) -> None:
    consent.ask(resolved(**SMALL), 1, yes=False)
    assert capsys.readouterr().out.startswith("expected: about ")


@pytest.mark.parametrize("given", [{"duration": "3600s"}, {"reps": "300"}, {"rate": "10gbit", "duration": "40s"}])
def test_cost__that_is_high_needs_a_yes(given: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RunError, match=r"needs a yes .* add YES=1, or lower DURATION, RATE or REPS"):
        consent.ask(resolved(**given), 1, yes=False)
    consent.ask(resolved(**given), 1, yes=True)
    assert capsys.readouterr().out.count("expected: about ") == 2


def test_cost__that_is_refused_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["experiment", "CLOCK=virtual", "CC=reno", "FLOWS=1", "DURATION=36000s", f"RESULTS={tmp_path / 'results'}"]
    assert main(words) == 1
    assert "needs a yes" in capsys.readouterr().err
    assert not (tmp_path / "results").exists()


@pytest.mark.skipif(not virtual_lab.KERNEL.exists(), reason="no virtual-time kernel (make kernel)")
@pytest.mark.parametrize(
    "given", [pytest.param(SMALL, id="small"), pytest.param(LARGE, id="large", marks=pytest.mark.long)]
)
@pytest.mark.serial  # beside other work, a processor with two threads a core counts nearly twice the time
def test_estimates__of_time_and_disk_are_those_of_real_runs(given: dict[str, str], tmp_path: Path) -> None:
    """A run in virtual time computes throughout: its time is that of its processes."""
    spec = resolved(**given)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = [f"{key.upper()}={value}" for key, value in given.items()]
    assert main(["experiment", "CLOCK=virtual", *words, f"RESULTS={tmp_path}"]) == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    (repetition,) = tmp_path.glob("2*/rep-1")
    written = sum(path.stat().st_size for path in repetition.rglob("*") if path.is_file() and not path.is_symlink())
    assert 1 / TIME_WITHIN <= took_s / cost.repetition_s(spec) <= TIME_WITHIN, (took_s, cost.repetition_s(spec))
    assert 1 / DISK_WITHIN <= written / disk.expected_bytes(spec) <= DISK_WITHIN, (written, disk.expected_bytes(spec))
    assert written <= disk.estimate_bytes(spec)
