# SPDX-License-Identifier: MIT
"""Published runs: a paper's figures are the same without the results, and publishing writes only what was measured
anew.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analysis.papers import publish, published
from analysis.papers.paper import Paper, PaperFigure
from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.papers.published import PublishedRuns
from analysis.results import distributions
from analysis.results.summary import summarize
from analysis.tests import sweeps
from lib.errors import InputError

DEPTH, WINDOW = "queue_depth_packets", "in_flight_packets"


def answers(runs: PaperRuns, *more: str) -> list[dict[str, Any]]:
    """What a figure may ask of each run of both sweeps, and the values of the summary `more`."""
    return [
        {
            "label": run.label, "buffer": run["buffer_packets"], "rate": run.experiment.rate_bps,
            "used": run.value("utilization", "mean"), "p90": run.percentile(DEPTH, 90),
            "depth": [each.tolist() for each in run.distribution(DEPTH)],
            "windows": {flow: list(map(list, of)) for flow, of in run.distributions_of_flows(WINDOW).items()},
            "flows": run.measure("flows", list[tuple[int, float]], lambda run: [
                (flow["id"], flow["packets"] / 3) for flow in run.summary["flows"]
            ]),
            "kernel": run.congestion_controls, "more": [run.value(name) for name in more],
        }
        for stem in ("one", "two") for run in runs.select(stem)
    ]  # fmt: skip


@pytest.fixture
def paper(tmp_path: Path) -> Paper:
    (tmp_path / "specs").mkdir()
    for stem in ("one", "two"):
        (tmp_path / f"specs/{stem}.yaml").touch()
    figure: Any = PaperFigure("figure_01", "a test.", ("one", "two"), None, None, None)  # type: ignore[arg-type]
    return Paper("test2026", "Tests", "Nobody 2026", tmp_path / "specs", (figure,))


@pytest.fixture
def results(tmp_path: Path, known_runs: Any) -> Path:
    """Two sweeps of a recorded run with different buffers: "one" twice, "two" once."""
    analysis = known_runs("two_flows").analysis
    summary = summarize(analysis) | {"valid": True, "reasons": []}
    for stem, reps in (("one", 2), ("two", 1)):
        places = sweeps.write(tmp_path / f"results/test2026-{stem}", summary, {"buf": [20, 40]}, reps=reps)
        for place in places.values():
            distributions.distributions(analysis).write_parquet(place / "rep-1" / distributions.NAME)
    return tmp_path / "results"


def publish_into(directory: Path, paper: Paper, results: Path, *more: str) -> list[str]:
    """Publishes after a figure has asked for `answers`; returns the names of the files that changed."""
    known = PublishedRuns(directory) if directory.is_dir() else None
    runs = PaperRuns(paper, results, published=known)
    answers(runs, *more)
    return [path.name for path in publish.publish_runs(runs, {"1": {"test2026-one/b20-r1"}}, directory)]


def of_published(paper: Paper, directory: Path) -> PaperRuns:
    return PaperRuns(paper, directory / "no results", published=PublishedRuns(directory))


def test_published_runs__answer_figures_as_the_results_do(paper, results, tmp_path):
    directory = tmp_path / "docs/test2026-runs"
    assert publish_into(directory, paper, results, "drops") == ["one.parquet", "two.parquet"]
    assert answers(of_published(paper, directory), "drops") == answers(PaperRuns(paper, results), "drops")
    assert len(answers(of_published(paper, directory))) == 6
    listed = published.rows(directory)
    assert listed.filter(pl.col("figures") == "1")["run"].to_list() == ["test2026-one/runs/b20-r1/rep-1"]
    assert listed["commit"].unique().to_list() == ["c0ffee" + 34 * "0"]


def test_published_runs__have_nothing_that_no_figure_asked_for(paper, results, tmp_path):
    publish_into(tmp_path, paper, results)
    runs = of_published(paper, tmp_path).select("one")
    asks: list[Callable[[PaperRun], Any]] = [
        lambda run: run.value("drops"), lambda run: run.table("flows"), lambda run: run.distribution(WINDOW),
        lambda run: run.percentile(DEPTH, 91),
        lambda run: run.measure("other", int, lambda run: 1), lambda run: run.summary,
    ]  # fmt: skip
    for ask in asks:
        with pytest.raises(InputError, match=r"published run test2026-one/b20-r1 has no .*: no figure asked"):
            ask(runs[0])
    with pytest.raises(InputError, match=r"flows: Input should be a valid integer; run the sweep again"):
        runs[0].measure("flows", int, lambda run: 1)


def test_publish__writes_only_the_sweep_that_was_measured_anew(paper, results, tmp_path):
    """A new repetition is added, and a run whose job has another name by now replaces its row."""
    directory = tmp_path / "docs"
    publish_into(directory, paper, results)
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    assert publish_into(directory, paper, results) == []
    again = tmp_path / "again/test2026-one/runs"
    for old, new in (("b20-r1", "renamed-r1"), ("b40-r2", "b40-r3")):
        shutil.copytree(results / f"test2026-one/runs/{old}", again / new)
    for path in (again / "renamed-r1/rep-1/summary.json",):
        path.write_text(path.read_text().replace('"valid": true', '"valid": false, "why": 1'))
    assert publish_into(directory, paper, tmp_path / "again") == ["one.parquet"]
    assert (directory / "two.parquet").read_bytes() == before["two.parquet"]
    listed = published.rows(directory).filter(sweep="test2026-one").sort("buffer_packets", "repetition")
    assert [Path(run).parent.name for run in listed["run"]] == ["renamed-r1", "b20-r2", "b40-r1", "b40-r2", "b40-r3"]
    assert listed["valid"].to_list() == [False, True, True, True, True]


def test_publish__leaves_out_answers_of_a_run_whose_figures_read_whole_tables(paper, results, tmp_path):
    runs = PaperRuns(paper, results)
    run = runs.select("two")[0]
    with pytest.raises(InputError, match="run the sweep again"):
        run.table("postcards")
    publish.publish_runs(runs, {}, tmp_path / "docs")
    assert publish.lacking_answers(runs) == 1
    assert len(published.rows(tmp_path / "docs")) == 6
    assert len(PublishedRuns(tmp_path / "docs").table) == 5
    assert publish.publish_runs(of_published(paper, tmp_path / "docs"), {}, tmp_path / "docs") == []  # the row stays


def test_publish__refuses_a_sweep_too_large_for_a_repository(paper, results, tmp_path, monkeypatch):
    monkeypatch.setattr(published, "MOST_BYTES", 1000)
    with pytest.raises(InputError, match=r"one.parquet: 4 runs have \d+ kB; allowed .*: 1 kB; publish fewer points"):
        publish_into(tmp_path / "docs", paper, results)
    assert list((tmp_path / "docs").iterdir()) == []


@pytest.mark.parametrize("damage", [b"", b"PAR1", None])
def test_published_runs__that_are_damaged_are_one_line(paper, results, tmp_path, damage):
    publish_into(tmp_path / "docs", paper, results)
    path = tmp_path / "docs/two.parquet"
    if damage is None:
        pl.read_parquet(path).drop("spec").write_parquet(path)
    else:
        path.write_bytes(damage)
    with pytest.raises(InputError, match=rf"^{path}: "):
        PublishedRuns(tmp_path / "docs")
