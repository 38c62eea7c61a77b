# SPDX-License-Identifier: MIT
"""Published runs: a paper's figures are the same without the results, and publishing writes only what was measured
anew. The committed pages are current. The stored runs that a figure selects.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analysis.papers import document, draw, look, publish, published, registry
from analysis.papers.paper import Paper, PaperFigure
from analysis.papers.paper_runs import EARLIER, NOT_VALID, LeftOut, PaperRun, PaperRuns
from analysis.papers.published import PublishedRuns
from analysis.papers.spang2021 import PAPER
from analysis.results import distributions
from analysis.results.summary import summarize
from analysis.tests import sweeps
from experiments.commands.figures import conditions
from lib.errors import InputError
from runs import plan_file, run_table
from runs.plan_file import Plan

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


# The committed pages are current --------------------------------------------------------------------------------------


RESULTS = Path(__file__).resolve().parents[2] / "docs/results"
PAPERS = registry.installed()
SLOW = ("5a", "arrival")  # their fits take half a minute; test_figures_of_sweeps.py fits fewer points
REFRESH = "publish again: make figures PAPER={} RUNS=published DRAW=only PUBLISH=1"


@pytest.mark.parametrize("paper", PAPERS.values(), ids=PAPERS)
def test_page__has_the_reasons_word_for_word_and_every_figure(paper: Paper) -> None:
    refresh = REFRESH.format(paper.key)
    page = (RESULTS / paper.page_name).read_text(encoding="utf-8")
    reasons = document.read_reasons(RESULTS / paper.reasons_name)
    assert {document.IN_SHORT, document.DIFFERENCES, document.RUNS} < set(reasons)
    assert [title for title, text in reasons.items() if f"\n\n{text}\n\n" not in page] == [], refresh
    shown = set(re.findall(r"\]\(([^)#]+?\.(?:svg|csv))\)", page))
    kinds = [(figure.name, ("csv",) if figure.is_table else ("csv", "svg")) for figure in paper.figures]
    kinds += [(f"{figure.name}-points", ("csv",)) for figure in paper.figures if figure.points]
    assert shown == {f"{paper.key}/{name}.{kind}" for name, of in kinds for kind in of}, refresh
    assert {path.name for path in (RESULTS / paper.key).iterdir()} == {Path(name).name for name in shown}, refresh


def measured(path: Path) -> dict[str, tuple[object, ...]]:
    """The measured numbers of a figure's CSV, by their names. What people read off the paper is not measured."""
    rows = pl.read_csv(path, infer_schema_length=None).filter(pl.col("measured").is_not_null())
    return {row[0]: row[1:] for row in rows.drop("paper", "why").iter_rows()}


@pytest.mark.parametrize("paper", PAPERS.values(), ids=PAPERS)
def test_published_runs__give_the_numbers_of_the_figures(
    paper: Paper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without figures that also need runs of which only the rows are published."""
    monkeypatch.setattr(look, "render", lambda *_: None)
    stored = PublishedRuns(RESULTS / paper.published_name)
    runs = PaperRuns(paper, tmp_path, conditions=conditions(paper), published=stored)
    lacking = ";".join(stored.without_answers[published.FIGURES]).split(published.SEPARATOR)
    other = []
    for figure in paper.figures:
        if figure.word not in (*lacking, *SLOW):
            draw.draw_one(runs, tmp_path, figure)
            now, was = (measured(path / f"{figure.name}.csv") for path in (tmp_path, RESULTS / paper.key))
            other += [(figure.name, what) for what, numbers in now.items() if was.get(what) != numbers]
            other += [(figure.name, "no number")] * (bool(was) > bool(now))
    assert other == [], REFRESH.format(paper.key)


@pytest.mark.parametrize("paper", PAPERS.values(), ids=PAPERS)
def test_page__counts_the_runs_that_the_figures_use(paper: Paper) -> None:
    used = published.rows(RESULTS / paper.published_name).filter(
        pl.col(published.FIGURES) != "", ~pl.col("sweep").str.ends_with("-ns3")
    )
    if paper.second:  # the page counts the runs of the first set
        used = used.filter(~pl.col("sweep").str.ends_with(paper.second.suffix))
    page = (RESULTS / paper.page_name).read_text(encoding="utf-8")
    assert f"\n\n{run_table.distinct(used.iter_rows(named=True))} valid runs in " in page, REFRESH.format(paper.key)
    known = {figure.word for figure in paper.figures}
    assert set(used[published.FIGURES].str.split(published.SEPARATOR).explode()) <= known


# The stored runs that a figure selects --------------------------------------------------------------------------------


KERNEL = {"hosts": {"sender": {"congestion_controls": ["reno", "cubic"]}}, "git": {"commit": "0123456789ab"}}


@pytest.fixture
def some(tmp_path, known_runs):
    """A sweep of two valid runs and an invalid one, and a short sweep of one run."""
    analysis = known_runs("two_flows").analysis
    for sweep, job, valid in [
        ("spang2021-some", "reno-2-r2", True),
        ("spang2021-some", "reno-2-r1", True),
        ("spang2021-some", "reno-2-r3", False),
        ("spang2021-some-smoke", "reno-2-r1", True),
    ]:
        directory = tmp_path / sweep / "runs" / job / "rep-1"
        directory.mkdir(parents=True)
        summary = summarize(analysis) | {"valid": valid, "reasons": [] if valid else ["a postcard was lost"]}
        (directory / "summary.json").write_text(json.dumps(summary))
        (directory / "environment.json").write_text(json.dumps(KERNEL))
        distributions.distributions(analysis).write_parquet(directory / distributions.NAME)
    return tmp_path


def test_select__gives_valid_runs_by_repetition_and_remembers_the_others(some):
    runs = PaperRuns(PAPER, some)
    assert [run.name for run in runs.select("some", cc="reno", flows=2)] == ["reno-2-r1", "reno-2-r2"]
    assert [run["sweep"] for run in PaperRuns(PAPER, some, smoke=True).select("some")] == ["spang2021-some-smoke"]
    assert runs.select("some", cc="cubic") == runs.select("some", pl.col("flows") > 2) == runs.select("other") == []
    provenance = runs.provenance()
    assert provenance["used"] == ["spang2021-some/reno-2-r1", "spang2021-some/reno-2-r2"]
    assert provenance["left_out"] == [LeftOut("spang2021-some/reno-2-r3", "a postcard was lost", NOT_VALID)]
    assert (provenance["clocks"], provenance["commits"]) == (["real"], ["0123456789"])
    # Without a run: an algorithm that no kernel has, or a run that was not done.
    assert runs.controls("some") == {"reno", "cubic"}
    assert runs.absence("some", "bbr2") == "BBRv2: not measured,\nno kernel at hand has it"
    assert runs.absence("some", "cubic") == "Cubic: no valid run"
    assert runs.absence("other", "bbr2") == "BBRv2: no valid run"


def test_distribution__is_of_one_flow_or_of_all(some):
    run = PaperRuns(PAPER, some).select("some")[0]
    by_flow = run.distributions_of_flows("in_flight_packets")
    assert list(by_flow) == [0, 1]
    each = [Counter(dict(zip(*by_flow[flow], strict=True))) for flow in (0, 1)]
    values, counts = run.distribution("in_flight_packets")
    assert (values[1:] > values[:-1]).all()
    assert dict(zip(values, counts, strict=True)) == each[0] + each[1]
    with pytest.raises(InputError, match=r"reno-2-r1/rep-1/postcards\.parquet: .*; run the sweep again"):
        run.table("postcards")


def test_select__leaves_out_runs_of_an_earlier_spec(some):
    directory = some / "spang2021-some"
    spec = json.loads((directory / "runs/reno-2-r1/rep-1/summary.json").read_text())["spec"]
    plan: dict[str, Any] = {
        "sweep": {"search": None},
        "jobs": {"reno-2-r1": {"spec": spec | {"seed": 1, "buffer_given": "1bdp"}}},
    }
    for change, earlier in (({}, 0), ({"rtt_ns": 1}, 3)):
        plan["jobs"]["reno-2-r1"]["spec"] |= change
        plan_file.write(directory, Plan.model_validate(plan))
        runs = PaperRuns(PAPER, some)
        runs.select("some", cc="reno", flows=2)
        assert sum(run.kind == EARLIER for run in runs.left_out.values()) == earlier
    plan["sweep"]["search"] = {"key": "buf"}
    plan_file.write(directory, Plan.model_validate(plan))
    assert len(PaperRuns(PAPER, some).select("some", cc="reno", flows=2)) == 2
