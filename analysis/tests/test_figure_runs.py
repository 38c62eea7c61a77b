# SPDX-License-Identifier: MIT
"""The stored runs that a figure selects."""

import json
from collections import Counter
from typing import Any

import polars as pl
import pytest

from analysis.papers.paper_runs import EARLIER, NOT_VALID, LeftOut, PaperRuns
from analysis.papers.spang2021 import PAPER
from analysis.results import distributions
from analysis.results.summary import summarize
from lib.errors import InputError
from runs import plan_file

KERNEL = {"hosts": {"sender": {"congestion_controls": ["reno", "cubic"]}}, "git": {"commit": "0123456789ab"}}


@pytest.fixture
def results(tmp_path, known_runs):
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


def test_select__gives_valid_runs_by_repetition_and_remembers_the_others(results):
    runs = PaperRuns(PAPER, results)
    assert [run.name for run in runs.select("some", cc="reno", flows=2)] == ["reno-2-r1", "reno-2-r2"]
    assert [run["sweep"] for run in PaperRuns(PAPER, results, smoke=True).select("some")] == ["spang2021-some-smoke"]
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


def test_distribution__is_of_one_flow_or_of_all(results):
    run = PaperRuns(PAPER, results).select("some")[0]
    by_flow = run.distributions_of_flows("in_flight_packets")
    assert list(by_flow) == [0, 1]
    each = [Counter(dict(zip(*by_flow[flow], strict=True))) for flow in (0, 1)]
    values, counts = run.distribution("in_flight_packets")
    assert (values[1:] > values[:-1]).all()
    assert dict(zip(values, counts, strict=True)) == each[0] + each[1]
    with pytest.raises(InputError, match=r"reno-2-r1/rep-1/postcards\.parquet: .*; run the sweep again"):
        run.table("postcards")


def test_select__leaves_out_runs_of_an_earlier_spec(results):
    directory = results / "spang2021-some"
    spec = json.loads((directory / "runs/reno-2-r1/rep-1/summary.json").read_text())["spec"]
    plan: dict[str, Any] = {
        "sweep": {"search": None},
        "jobs": {"reno-2-r1": {"spec": spec | {"seed": 1, "buffer_given": "1bdp"}}},
    }
    for change, earlier in (({}, 0), ({"rtt_ns": 1}, 3)):
        plan["jobs"]["reno-2-r1"]["spec"] |= change
        plan_file.write(directory, plan)
        runs = PaperRuns(PAPER, results)
        runs.select("some", cc="reno", flows=2)
        assert sum(run.kind == EARLIER for run in runs.left_out.values()) == earlier
    plan["sweep"]["search"] = {"key": "buf"}
    plan_file.write(directory, plan)
    assert len(PaperRuns(PAPER, results).select("some", cc="reno", flows=2)) == 2
