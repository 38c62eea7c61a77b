# SPDX-License-Identifier: MIT
"""Simulated repetitions. Tests that only read a repetition share one copy."""

from __future__ import annotations

import contextlib
import io
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from analysis.judge.analyse import Analysis, analyse
from analysis.tests import campaign, simulate
from analysis.tests.browser import Browser, needed
from analysis.tests.undrawn import leave_out
from bufferscope.__main__ import main


@dataclass
class Known:
    """A simulated repetition, the simulation's ground truth, and the analysis of the repetition."""

    directory: Path
    scenario: simulate.Scenario
    truth: simulate.Truth
    analysis: Analysis


SCENARIOS = {
    "two_flows": simulate.Scenario(),
    "reordered": simulate.Scenario(flows=3, swap_every=53, seed=3),
    "ipv6_bytes": simulate.Scenario(ipv6=True, threshold=15, threshold_bytes=22_000, seed=4),
    "no_loss": simulate.Scenario(max_cwnd=12, seed=5),
    "tiny_buffer": simulate.Scenario(flows=4, threshold=2, seed=6),
    "ecn": simulate.Scenario(mode="ecn", ecn_threshold=8, rate_bps=49_999_999, seed=8),
    "many_flows": simulate.Scenario(flows=128, rate_bps=100_000_000, threshold=120, ccs=("cubic", "bbr"), seed=7),
}
OTHERS = {"one_flow": simulate.Scenario(flows=1, duration_ns=1_500_000_000, warmup_ns=500_000_000)}
# The same packets as in two_flows; only the measures of exactness and their limits differ.
VIRTUAL = {
    "virtual": simulate.Scenario(clock="virtual", switch="driver"),
    "virtual_process": simulate.Scenario(clock="virtual"),
}


@pytest.fixture(scope="session")
def known_runs(tmp_path_factory):
    """A function: name of a scenario -> Known."""
    made: dict[str, Known] = {}

    def get(name: str) -> Known:
        if name not in made:
            directory = tmp_path_factory.mktemp(name) / "rep-1"
            scenario = (SCENARIOS | OTHERS | VIRTUAL)[name]
            truth = simulate.write_run(directory, scenario)
            made[name] = Known(directory, scenario, truth, analyse(directory))
        return made[name]

    return get


@pytest.fixture(params=list(SCENARIOS))
def known(request, known_runs):
    """The repetition of each of SCENARIOS in turn."""
    return known_runs(request.param)


@pytest.fixture
def fresh(tmp_path, known_runs):
    """A function: name -> a copy of that repetition's directory, for tests that change it."""

    def get(name: str = "two_flows") -> Path:
        return Path(shutil.copytree(known_runs(name).directory, tmp_path / "run" / "rep-1"))

    return get


def pytest_collection_modifyitems(items):
    """`make test` installs no browser."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """A real browser, shared by all tests. Without a browser, tests that need it are skipped."""
    needed()
    opened = Browser(tmp_path_factory.mktemp("browser"))
    yield opened
    opened.close()


NAME = "$\\frac{$"  # of a congestion control; it must not be drawn as a formula
DRAWN = simulate.Scenario(ccs=("reno", NAME), duration_ns=600_000_000)


@pytest.fixture(scope="session")
def drawn(tmp_path_factory):
    """A repetition with everything that replay makes, and what replay printed."""
    directory = tmp_path_factory.mktemp("drawn") / "rep-1"
    simulate.write_run(directory, DRAWN)
    simulate.record_digests(directory)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(["replay", str(directory)]) == 0
    return directory, out.getvalue()


@pytest.fixture
def undrawn(monkeypatch):
    """Leaves out figures and pages, which take most of an analysis's time."""
    leave_out(monkeypatch.setattr)


@pytest.fixture
def blank():
    """Empty drawings, which are made faster."""
    with campaign.undrawn():
        yield


@pytest.fixture(scope="session")
def recorded(known_runs):
    """A simulated scenario and its ground truth."""
    known = known_runs("two_flows")
    return known.scenario, known.truth
