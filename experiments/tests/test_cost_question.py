# SPDX-License-Identifier: MIT
"""The cost of an experiment is announced before the start, is about right, and needs the user's yes if it is high."""

import resource
import statistics
import threading
from pathlib import Path

import pytest

from bufferscope.__main__ import main
from experiments.machine import machine_speed
from experiments.machine.host import Host
from experiments.plan import cost
from experiments.run import cost_question
from experiments.spec import demand, disk
from experiments.spec.resolve import resolve
from lib import inherited
from lib.errors import RunError
from model.experiment import Experiment
from virtual.kernel import config
from wire.formats import POSTCARD

HOST = Host(config.OF_LINUX, netem=True, clock="virtual")
WITHIN = 1.5
SAMPLE_EVERY_S = 2.0
SMALL = {"cc": "cubic", "flows": "4", "rate": "100mbit", "rtt": "10ms", "duration": "2s", "warmup": "1s"}
LARGE = {"cc": "reno", "flows": "2", "rate": "1gbit", "rtt": "10ms", "duration": "1.5s", "warmup": "0.5s"}


def resolved(**given: object) -> Experiment:
    return resolve(given, HOST)


def test_cost__is_said_and_a_high_one_needs_a_yes_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cost_question.ask(resolved(**SMALL), 1, yes=False)
    assert capsys.readouterr().out.startswith("expected: about ")
    for given in ({"duration": "3600s"}, {"reps": "300"}, {"rate": "10gbit", "duration": "40s"}):
        with pytest.raises(RunError, match=r"needs a yes, .* add YES=1, or lower DURATION, RATE or REPS"):
            cost_question.ask(resolved(**given), 1, yes=False)
        cost_question.ask(resolved(**given), 1, yes=True)
        assert capsys.readouterr().out.count("expected: about ") == 2
    words = ["experiment", "CLOCK=virtual", "CC=reno", "FLOWS=1", "DURATION=36000s", f"RESULTS={tmp_path / 'results'}"]
    assert main(words) == 1
    assert "needs a yes" in capsys.readouterr().err
    assert not (tmp_path / "results").exists()


def test_speed__that_cannot_be_measured_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_speed, "WORK", "import os; os.kill(os.getpid(), 9)")
    with pytest.raises(RunError, match="ended with status -9"):
        cost_question.ask(resolved(**SMALL), 2, yes=False)


def test_disk__has_room_for_the_temporary_files_of_iperf3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "free_bytes", lambda _: 1 << 20)
    assert "TMPDIR" in (disk.temporary_shortage(resolved(clock="real", flows="16")) or "")
    for given in ({"flows": "8"}, {"flows": "16", "generator": "epoll"}):
        assert disk.temporary_shortage(resolved(clock="real", **given)) is None


def test_disk__of_tiny_flows_has_room_for_the_packets_of_each_flow() -> None:
    spec = resolved(traffic="finite", cc="reno", sizes="fixed:100b", rate="20mbit", rtt="10ms", duration="20s")
    flows = spec.finite[0].flows(demand.traffic_ns(spec))
    assert flows > demand.data_packets(spec)
    assert disk.estimate_bytes(spec) > flows * disk.LEAST_FLOW_PACKETS * POSTCARD.length


class Sampled(threading.Thread):
    """The speed of the machine during a run, sampled every few seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.samples: list[machine_speed.Speed] = []
        self.used_s = 0.0
        self.ended = threading.Event()

    def run(self) -> None:
        while True:
            self.samples.append(machine_speed.measure(1))
            if self.ended.wait(SAMPLE_EVERY_S):
                return

    def typical(self) -> float:
        """The median of the processor's slowness."""
        self.ended.set()
        self.join()
        self.used_s = sum(sample.processor for sample in self.samples) * machine_speed.REFERENCE_S
        return statistics.median(sample.processor for sample in self.samples)


@pytest.mark.virtual
@pytest.mark.parametrize(
    "given", [pytest.param(SMALL, id="small"), pytest.param(LARGE, id="large", marks=pytest.mark.long)]
)
@pytest.mark.serial
def test_estimates__of_time_and_disk_are_those_of_real_runs(given: dict[str, str], tmp_path: Path) -> None:
    """A run in virtual time never sleeps: its wall time is the processor time of its processes, plus their waits for
    other processes. On a busy machine these waits are random, so only the processor time is checked.
    """
    spec = resolved(**given)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    sampled = Sampled()
    inherited.settle()  # changes the environment, which it must not do while the thread starts a process
    sampled.start()
    try:
        words = [f"{key.upper()}={value}" for key, value in given.items()]
        assert main(["experiment", "CLOCK=virtual", *words, f"RESULTS={tmp_path}"]) == 0
    finally:
        slowness = sampled.typical()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime - sampled.used_s
    expected_s = cost.repetition_s(spec, slowness)
    assert 1 / WITHIN <= used_s / expected_s <= WITHIN, (used_s, expected_s, sampled.samples)
    (repetition,) = tmp_path.glob("2*/rep-1")
    written = sum(path.stat().st_size for path in repetition.rglob("*") if path.is_file() and not path.is_symlink())
    assert 1 / WITHIN <= written / disk.expected_bytes(spec) <= WITHIN, (written, disk.expected_bytes(spec))
    assert written <= disk.estimate_bytes(spec)


def test_cost__multiplies_what_is_computed_by_the_slowness_and_depends_on_what_is_kept() -> None:
    spec = resolved(**SMALL)
    assert cost.repetition_s(spec, 2.0) == pytest.approx(2 * cost.repetition_s(spec))
    real = spec.model_copy(update={"clock": "real"})
    assert cost.repetition_s(real, 2.0) - cost.repetition_s(real) == pytest.approx(cost.analysis_s(real))
    assert cost.analysis_s(spec, "summary") == cost.analysis_s(spec, "flows") < cost.analysis_s(spec) / 2
    assert cost.analysis_s(spec, "tables") == cost.analysis_s(spec)
