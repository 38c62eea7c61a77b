# SPDX-License-Identifier: MIT
"""A stored sweep, as a notebook opens it."""

import json
from pathlib import Path

import pytest

import bufferscope as bs
from analysis.arithmetic.statistics import mean_interval
from analysis.tests import sweeps
from bufferscope.notebook_sweep import NotebookSweep

pytestmark = pytest.mark.long  # all of it uses one dear fixture


@pytest.fixture(scope="module")
def stored(results: Path, tmp_path_factory: pytest.TempPathFactory) -> NotebookSweep:
    summary = json.loads((results / "virtual/rep-1/summary.json").read_text())
    directory = tmp_path_factory.mktemp("sweeps") / "grid"
    places = sweeps.write(directory, summary, {"cc": ["cubic", "reno"], "buf": [10, 80]}, 2)
    (places["creno-b80-r2"] / "rep-1/summary.json").unlink()
    return bs.sweep(directory)


def test_sweep__has_its_runs_means_and_figures(stored: NotebookSweep) -> None:
    assert stored.parameters == {"cc": ["cubic", "reno"], "buf": [10, 80]}
    assert (stored.runs.columns, stored.runs.height) == (bs.index(stored.directory.parent).columns, 7)
    means = {(row["cc"], row["buf"]): row for row in stored.means.iter_rows(named=True)}
    assert {key: row["runs"] for key, row in means.items()} == {
        ("cubic", 10): 2, ("cubic", 80): 2, ("reno", 10): 2, ("reno", 80): 1,
    }  # fmt: skip
    delays = stored.runs.filter(cc="cubic", buffer_packets=10)["queue_delay_p50_ns"].to_list()
    names = ("queue_delay_p50_ns", "queue_delay_p50_ns_low", "queue_delay_p50_ns_high")
    expected = mean_interval(delays)
    assert expected
    assert [means["cubic", 10][name] for name in names] == list(expected[:3])
    assert means["reno", 80]["queue_delay_p50_ns_low"] is None
    assert stored.plot.queueing_delay()._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="there are: least_buffer"):
        stored.plot.nothing  # noqa: B018
    with pytest.raises(bs.InputError, match="has no data for least_buffer"):
        stored.plot.least_buffer()
    with pytest.raises(bs.InputError):
        bs.sweep(stored.directory / "runs")


@pytest.mark.long  # `make test` does not install pandas
def test_tables__become_those_of_pandas(stored: NotebookSweep) -> None:
    frame = stored.means.to_pandas()
    assert frame["cc"].to_list() == stored.means["cc"].to_list()
    assert frame["queue_delay_p99_ns"].to_list() == stored.means["queue_delay_p99_ns"].to_list()
