# SPDX-License-Identifier: MIT
"""The stored runs that a figure selects, and its footer about them."""

import json
from collections import Counter
from typing import Any

import polars as pl
import pytest

from analysis import distributions
from analysis.papers import look, run_list
from analysis.papers.packet_trace import PacketTrace
from analysis.papers.spang2021 import PAPER
from analysis.papers.stored_runs import EARLIER, NOT_VALID, LeftOut, StoredRuns
from analysis.summary import summarize
from analysis.tests import sweeps
from lib.errors import InputError

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


def test_summary__that_lacks_a_key_is_one_line(results):
    (run, _) = StoredRuns(PAPER, results).select("some")
    path = run.directory / "summary.json"
    summary = json.loads(path.read_text())
    del summary["loss"]["longest_rtt_ns"], summary["flows"]
    path.write_text(json.dumps(summary))
    with pytest.raises(InputError, match=r"summary.json: has no longest_rtt_ns: another version wrote it; make replay"):
        PacketTrace(run)
    with pytest.raises(InputError, match=r"summary.json: has no flows: another version wrote it; make replay"):
        _ = run.summary["flows"]


def test_select__gives_valid_runs_by_repetition_and_remembers_the_others(results):
    runs = StoredRuns(PAPER, results)
    assert [run.name for run in runs.select("some", cc="reno", flows=2)] == ["reno-2-r1", "reno-2-r2"]
    assert [run["sweep"] for run in StoredRuns(PAPER, results, smoke=True).select("some")] == ["spang2021-some-smoke"]
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


def test_list__has_the_sweeps_of_the_paper_and_no_short_or_changed_version_of_one(tmp_path, known_runs):
    summary = summarize(known_runs("two_flows").analysis)
    names = ("ecn", "ecn-real", "ecn-rtt-5ms", "ecn-smoke", "ecn-rtt-5ms-smoke", "ecn-smoke-rtt-5ms", "mine")
    for name in names:
        sweeps.put(tmp_path / f"spang2021-{name}/runs/reno-r1/rep-1", summary)
    listed = {smoke: sorted(run_list.rows(StoredRuns(PAPER, tmp_path, smoke))["sweep"]) for smoke in (False, True)}
    assert listed == {False: ["spang2021-ecn", "spang2021-ecn-real"], True: ["spang2021-ecn-smoke"]}


def test_distribution__is_of_one_flow_or_of_all(results):
    run = StoredRuns(PAPER, results).select("some")[0]
    by_flow = run.distributions_of_flows("in_flight_packets")
    assert list(by_flow) == [0, 1]
    each = [Counter(dict(zip(*by_flow[flow], strict=True))) for flow in (0, 1)]
    values, counts = run.distribution("in_flight_packets")
    assert (values[1:] > values[:-1]).all()
    assert dict(zip(values, counts, strict=True)) == each[0] + each[1]
    with pytest.raises(InputError, match=r"reno-2-r1/rep-1/postcards\.parquet: .*; run the sweep again"):
        run.table("postcards")


def test_footer__is_one_line():
    def text(used, left_out=()):
        figure, _ = look.new_figure(look.COLUMN_IN, 2)
        look.footer(figure, {"used": used, "left_out": left_out, "clocks": ["virtual"], "commits": ["abc"]})
        return figure.get_supxlabel()

    left_out = [LeftOut(f"s/{i}", "why", NOT_VALID) for i in range(5)]
    long = "s" * 30
    for used, more, said in (
        (["s/a", "s/b"], (), "From 2 runs of s (virtual time; commit abc)."),
        (["s/a", "s/b", "t/a"], (), "From 3 runs (virtual time; commit abc)."),
        ([], (), "From no run."),
        (["s/a"], left_out, "From s/a (virtual time; commit abc); 5 not drawn, not valid."),
        ([f"{long}/a", f"{long}/b"], left_out, f"From 2 runs of {long} (virtual time); 5 not drawn, not valid."),
    ):
        assert text(used, more) == said


def test_select__leaves_out_runs_of_an_earlier_spec(results):
    directory = results / "spang2021-some"
    spec = json.loads((directory / "runs/reno-2-r1/rep-1/summary.json").read_text())["spec"]
    plan: dict[str, Any] = {
        "sweep": {"search": None},
        "jobs": {"reno-2-r1": {"spec": spec | {"seed": 1, "buffer_given": "1bdp"}}},
    }
    for change, earlier in (({}, 0), ({"rtt_ns": 1}, 3)):
        plan["jobs"]["reno-2-r1"]["spec"] |= change
        (directory / "plan.json").write_text(json.dumps(plan))
        runs = StoredRuns(PAPER, results)
        runs.select("some", cc="reno", flows=2)
        assert sum(run.kind == EARLIER for run in runs.left_out.values()) == earlier
    plan["sweep"]["search"] = {"key": "buf"}
    (directory / "plan.json").write_text(json.dumps(plan))
    assert len(StoredRuns(PAPER, results).select("some", cc="reno", flows=2)) == 2
