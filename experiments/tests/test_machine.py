# SPDX-License-Identifier: MIT
"""Experiments wait for each other in the order in which they came. The machine is free again however an experiment
ends. The tests use locks with another name.
"""

import contextlib
import os
import pwd
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from experiments.machine import reservation as machine
from experiments.machine.host import CHECKOUT, Host
from experiments.machine.reservation import Asking
from experiments.run import runner
from experiments.setup import missing
from experiments.spec.resolve import resolve
from lib.errors import RunError

Holder = Callable[[str, str], "subprocess.Popen[str]"]
NAME = f"\0bufferscope-test-{os.getpid()}"
# Says "in" with the processors; ends with its standard input.
HOLD = f"""
import sys
from experiments.machine import reservation as machine
asking = machine.Asking(sys.argv[2])
held = machine.for_real_time if sys.argv[1] == "real" else machine.for_virtual_time
with held({NAME!r}, *([1] if sys.argv[1] == "virtual" else []), asking):
    print("in", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder() -> Iterator[Holder]:
    """Starts experiments, which end with the test."""
    with contextlib.ExitStack() as ends:

        def start(clock: str, title: str) -> subprocess.Popen[str]:
            words = [sys.executable, "-c", HOLD, clock, title]
            process = subprocess.Popen(words, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            ends.enter_context(process)
            ends.callback(process.kill)
            return process

        yield start


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline()


def test_lock__names_its_holder_and_is_free_after_sigkill(holder: Holder) -> None:
    refusing = Asking("second", wait=False)
    user = pwd.getpwuid(os.getuid()).pw_name
    other = holder("real", "first")
    line(other)
    for _ in range(5):
        with pytest.raises(RunError, match=rf"first \(pid {other.pid}, {user}, since "), \
                machine.for_virtual_time(NAME, 1, refusing):  # fmt: skip
            pass
    other.kill()
    other.wait()
    with machine.for_real_time(NAME, refusing):
        pass


def test_experiments__start_in_the_order_in_which_they_came(holder: Holder) -> None:
    """The last one would find a free processor beside the first, and the one in real time would never start."""
    waiting = [holder("virtual", "first")]
    assert line(waiting[0]) == "in\n"
    for clock, title, before in (("real", "second", "first"), ("virtual", "third", "second")):
        waiting.append(holder(clock, title))
        assert line(waiting[-1]).startswith(f"waiting for {before} (pid {waiting[-2].pid}, ")
    for ending, following in zip(waiting, [*waiting[1:], None], strict=True):
        ending.communicate("")
        if following:
            while (said := line(following)).startswith("waiting for "):
                pass  # its turn has come, its processor is not free yet
            assert said == "in\n"


def test_experiment__whose_predecessors_were_killed_does_not_wait_for_them(holder: Holder) -> None:
    experiments = []
    for title in ("first", "second", "third"):
        experiments.append(holder("real", title))
        line(experiments[-1])
    first, second, third = experiments
    second.kill()
    assert line(third).startswith(f"waiting for first (pid {first.pid}, ")
    first.kill()
    assert line(third) == "in\n"


def test_real_time__leaves_what_it_does_not_need_to_virtual_time(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[list[int]] = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)))
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, to: kept.append(sorted(to)))
    with machine.for_real_time(NAME, Asking("a")), machine.for_virtual_time(NAME, 3, Asking("b", wait=False)) as free:
        assert (free, kept) == ([5, 4], [[0, 1, 2, 3], [4, 5]])
    with machine.for_virtual_time(NAME, 3, Asking("b")) as free:
        assert (free, kept[-1]) == ([5, 4, 3], list(range(6)))


def test_virtual_time__shares_one_processor_only_if_none_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(4)))
    monkeypatch.setattr(os, "sched_setaffinity", lambda *_: None)
    with contextlib.ExitStack() as held:
        taken = [held.enter_context(machine.for_virtual_time(NAME, most, Asking("a"))) for most in (2, 4, 4)]
    assert taken == [[3, 2], [1, 0], [3]]


def test_run__is_refused_whatever_its_results_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing, "of", lambda _: [])
    monkeypatch.setattr(machine, "NAME", NAME)
    with machine.for_real_time(NAME, Asking("first")), pytest.raises(RunError, match="another experiment is running"):
        runner.run(resolve({}, Host(("cubic",), netem=False)), tmp_path / "results", wait=False)
    assert not (tmp_path / "results").exists()
