# SPDX-License-Identifier: MIT
"""make figures: its parameters, the order of sweeps, and figures that short sweeps measure."""

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from analysis.papers import registry
from analysis.papers.document import DrawnFigure
from analysis.papers.paper import Paper
from analysis.papers.paper import sweeps as sweeps_of
from analysis.papers.spang2021 import PAPER
from experiments.commands import figures
from experiments.machine import host
from experiments.machine.host import CHECKOUT, Host
from experiments.sweep import run
from experiments.sweep.spec import Sweep
from lib import keys
from lib.errors import RunError, SpecError
from lib.words import read_words
from virtual.kernel import config

HOSTS = {
    "virtual": Host((*config.OF_LINUX, *config.OURS), netem=True, clock="virtual"),
    "real": Host(("bbr", "cubic", "reno"), netem=True),  # as in Linux distributions, without Scalable TCP
}


Measured = Callable[..., tuple[int, list[tuple[str, int]]]]


def read(words: Sequence[str]) -> figures.Asked:
    return keys.read(figures.Asked, *read_words(list(words), keys.table(figures.Asked)))


def test_results__are_in_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert read(["PAPER=spang2021"]).options.results == tmp_path / "results"


def test_words__are_all_checked_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "beside").mkdir()
    for words, said in (
        ("PAPER=spang2021 FIGURE=99 DRAW=no JOBS=0 CLOCK=both", ["JOBS=0", "CLOCK=both", "DRAW=no", "FIGURE=99"]),
        ("PAPER=spang2021 FIGURE=besi", ["FIGURE=besi"]),  # FIGURE=5 means 5a and 5b, but this means nothing
        ("", ["PAPER"]),
        ("PAPER=x FIGURE=99 DRAW=no", ["PAPER=x", "DRAW=no"]),
        ("PAPER=spang2021 FIGURE=5 PUBLISH=1", ["PUBLISH=1"]),  # publishes all figures
        ("PAPER=spang2021 FIGURE=4 CLOCK=real", ["FIGURE=4"]),  # is drawn from runs in virtual time
        ("PAPER=spang2021 MODE=ecn", ["MODE=ecn"]),  # no set of this paper
        ("PAPER=spang2021 MODE=tail-drop CLOCK=real", ["MODE=tail-drop"]),
        (f"PAPER=spang2021 BESIDE={tmp_path}/beside", ["BESIDE"]),
        (f"PAPER=spang2021 DRAW=only RESULTS={tmp_path}/resluts", ["RESULTS"]),
    ):
        with pytest.raises(SpecError) as failure:
            read(words.split())
        assert [error.key for error in failure.value.errors] == [each.partition("=")[0] for each in said], words
    assert [path.name for path in tmp_path.iterdir()] == ["beside"]
    asked = read(["PAPER=spang2021", "SMOKE=1", f"RESULTS={tmp_path}", "FIGURE=5", "JOBS=3"])
    assert asked.output == tmp_path / "figures/spang2021-smoke"
    assert [figure.name for figure in asked.chosen] == ["figure_05a", "figure_05b"]
    assert (asked.options.results, asked.options.at_once, asked.options.attempts) == (tmp_path, 3, None)


def probe(clock: str) -> Host:
    return HOSTS[clock or "virtual"]


class Sweeps:
    """Replaces the function that runs a sweep, and records each sweep's name and repetitions."""

    def __init__(self, status: int = 0, refuses: str = "nothing") -> None:
        self.asked: list[tuple[str, int]] = []
        self.status, self.refuses = status, refuses

    def __call__(self, sweep: Sweep, probe: object, options: run.Options, with_page: bool = True) -> int:
        assert not with_page  # the reports follow the last round
        self.asked.append((sweep.name.removeprefix("spang2021-"), sweep.reps))
        if sweep.name.endswith(self.refuses):
            raise RunError("the disk is too small")
        return self.status


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Measured:
    """A function that measures the figures of `words`: the status, and the sweeps that were asked for."""

    def measure(*words: str, **sweeps: Any) -> tuple[int, list[tuple[str, int]]]:
        made = Sweeps(**sweeps)
        monkeypatch.setattr(figures.run, "run", made)
        return figures.measure(read(["PAPER=spang2021", f"RESULTS={tmp_path}", *words]), probe), made.asked

    return measure


def test_measure__takes_first_repetitions_first_and_searches_last(measured: Measured) -> None:
    names = ("twenty-packets", "least-buffer", "least-buffer-utilization")
    rounds = [(name, number) for number in (1, 2) for name in names]
    assert measured("FIGURE=5") == (0, rounds + [("twenty-packets", number) for number in range(3, 11)])
    assert measured("FIGURE=5", "REPS=1") == (0, rounds[:3])


def test_measure__goes_on_without_a_sweep_that_cannot_be_run_and_ends_when_it_is_stopped(
    measured: Measured, capsys: pytest.CaptureFixture[str]
) -> None:
    status, asked = measured("FIGURE=5", refuses="2021-least-buffer")
    assert status == 2
    assert [name for name, _ in asked].count("least-buffer") == 1
    assert ("twenty-packets", 3) in asked
    assert capsys.readouterr().err == "error: the disk is too small\n"
    status, asked = measured(status=130)
    assert (status, len(asked)) == (130, 1)


def test_measure__of_real_time_and_of_a_second_set_runs_these_versions_alone(measured: Measured) -> None:
    for words in (["CLOCK=real"], ["CLOCK=real", "FIGURE=clocks"]):
        status, asked = measured(*words)
        assert (status, {number for _, number in asked}) == (0, {1, 2, 3})
        assert {name for name, _ in asked} == {f"{stem}-real" for stem in sweeps_of(PAPER.choose("clocks"))}
    names = {name for name, _ in measured("MODE=tail-drop")[1]}
    assert "reno-depth-mode-tail-drop" in names
    assert all(name.endswith("-mode-tail-drop") for name in names)
    assert not any(name.startswith(("ecn", "factors")) for name in names)  # these vary the mode


def test_draw__is_refused_while_another_command_draws_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = read(["PAPER=spang2021", f"RESULTS={tmp_path}"])
    refused: list[str] = []

    def drawn(*_: object) -> list[DrawnFigure]:
        if not refused:
            with pytest.raises(OSError, match="in use by another process") as failure:
                figures.draw(asked)
            refused.append(failure.value.filename)
        return []

    monkeypatch.setattr(figures.papers_draw, "draw", drawn)
    assert figures.draw(asked) == 0
    assert refused == [f"{asked.output}/.drawn"]
    assert figures.draw(asked) == 0


def make_figures(results: Path, *words: str, paper: Paper = PAPER) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bufferscope", "figures", f"PAPER={paper.key}", f"RESULTS={results}", *words]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)


@pytest.mark.virtual
@pytest.mark.skipif(not host.tool("parallel"), reason="GNU parallel missing: apt-get install parallel")
@pytest.mark.long
@pytest.mark.parametrize("paper", registry.installed().values(), ids=registry.installed())
def test_smoke__is_measured_once_and_drawn_from_what_is_stored(tmp_path: Path, paper: Paper) -> None:
    """All figures of one paper, and a figure of each kind of traffic of the others."""
    chosen = {"appenzeller2004": "10", "aqm": "3", "enachescu2006": "6", "prasad2007": "13"}.get(paper.key, "")
    words = ["SMOKE=1", *([f"FIGURE={chosen}"] if chosen else [])]
    figures_ = paper.choose(chosen) if chosen else paper.figures
    done = make_figures(tmp_path, *words, paper=paper)
    assert done.returncode == 0, done.stdout + done.stderr
    # Runs in real time would take too long here, so the figure that compares both clocks lacks them.
    assert done.stderr == ("" if chosen else "no valid run for clocks\n")
    assert done.stdout.count(" runs are valid -> ") == len(sweeps_of(figures_))
    pictures = tmp_path / "figures" / paper.output_name(smoke=True)
    assert {path.stem for path in pictures.glob("*.png")} == {figure.name for figure in figures_}
    page = pictures / paper.page_name
    if chosen:
        assert not page.exists()  # only all figures make a page
        return
    assert page.read_text().count("\n## ") == len(figures_) + 2
    picture = pictures / "figure_09.png"
    (summary,) = tmp_path.glob("spang2021-four-flows-smoke/runs/*/rep-1/summary.json")
    measured, drawn = summary.stat().st_mtime_ns, picture.read_bytes()
    picture.unlink()
    again = make_figures(tmp_path, "SMOKE=1", "FIGURE=9")
    assert again.returncode == 0, again.stderr
    assert (summary.stat().st_mtime_ns, picture.read_bytes()) == (measured, drawn)
    whole = make_figures(tmp_path, "FIGURE=9", "DRAW=only")
    assert whole.returncode == 2
    assert "no valid run for figure_09" in whole.stderr


def test_show__counts_published_runs_and_makes_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(figures, "prober", lambda build, ns3: probe)
    for more, are_done in ([], False), (["RUNS=published"], True):
        words = ["PAPER=enachescu2006", "FIGURE=6", f"RESULTS={tmp_path}", "SHOW=1", *more]
        assert figures.run_command(read(words)) == 0
        assert bool(re.search(r", \d+ done; ", capsys.readouterr().out)) == are_done
    assert list(tmp_path.iterdir()) == []
