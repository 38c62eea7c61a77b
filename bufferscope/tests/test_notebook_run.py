# SPDX-License-Identifier: MIT
"""Stored runs and sweeps, as a notebook opens them: content, errors, refused paths; and the example notebook runs."""

import json
import warnings
from pathlib import Path

import matplotlib
import pytest

import bufferscope as bs
from analysis.tests import damages, sweeps
from bufferscope.__main__ import main
from bufferscope.notebook_sweep import NotebookSweep
from experiments.machine.host import CHECKOUT

pytestmark = pytest.mark.long  # all of it uses one dear fixture


@pytest.mark.filterwarnings("error")
def test_open__reads_summary_spec_tables_and_figures(results: Path) -> None:
    run = bs.open(results / "latest")
    assert (run.valid, run.reasons) == (True, [])
    assert run.summary == json.loads((results / "virtual/rep-1/summary.json").read_text())
    assert run.spec["rate_bps"] == 6_000_000
    assert len(run.postcards) == run.summary["ledger"]["postcards_rows"]
    assert run.joined["enqueue_mono_ns"].is_sorted()
    assert run.tcp.columns == run.table("tcp").collect_schema().names()
    assert "queue_and_windows" in dir(run.plot)
    style = dict(matplotlib.rcParams)
    for name in dir(run.plot):
        assert getattr(run.plot, name)()._repr_png_().startswith(b"\x89PNG"), name
    assert dict(matplotlib.rcParams) == style  # the notebook's
    with pytest.raises(AttributeError, match=r"there are: .*queue_and_windows"):
        run.plot.nothing  # noqa: B018
    with pytest.raises(bs.InputError, match="allowed: joined, postcards, tcp"):
        run.table("rows")


def test_index__has_one_row_per_run(results: Path) -> None:
    assert bs.index(results)["run"].to_list() == ["real/rep-1", "virtual/rep-1"]
    with pytest.raises(bs.InputError, match="is not a directory"):
        bs.index(results / "none")


def test_file__that_is_gone_or_raw_and_damaged_is_one_line(fresh: Path) -> None:
    with (fresh / "postcards.bsp").open("r+b") as file:
        file.seek(5000)
        file.write(b"xx")
    with pytest.raises(bs.InputError, match=r"postcards\.bsp: damaged"):
        bs.open(fresh).plot.queue_and_windows()
    for name, said in (("joined.parquet", "joined"), ("summary.json", "is not analysed")):
        (fresh / name).unlink()
        with pytest.raises(bs.InputError, match=said):
            _ = bs.open(fresh).joined


def test_run__that_is_not_valid_warns_once_with_its_first_reason(fresh: Path) -> None:
    summary = json.loads((fresh / "summary.json").read_text()) | {"valid": False, "reasons": ["it was late", "x"]}
    (fresh / "summary.json").write_text(json.dumps(summary))
    damages.accept(fresh, "summary.json")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = bs.open(fresh)
        assert (run.valid, len(run.joined) > 0) == (False, True)
    (said,) = [warning for warning in caught if "NOT VALID" in str(warning.message)]
    assert str(said.message) == f"{fresh}: NOT VALID: it was late"
    assert said.filename == __file__


def test_open__refuses_a_path_without_a_single_run(results: Path, tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"two/rep-{number}").mkdir(parents=True)
        (tmp_path / f"two/rep-{number}/spec.yaml").write_text("")
    for path, said in (
        (tmp_path, "is not a run"), (tmp_path / "none", "is not a run"), (results, "is not a run"),
        (tmp_path / "two", "has 2 repetitions"), (tmp_path / "two/rep-1", "is not analysed"),
    ):  # fmt: skip
        with pytest.raises(bs.InputError, match=said):
            bs.open(path)


def test_compare__says_that_clocks_differ(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", f"{results}/real", f"{results}/virtual", f"OUTPUT={tmp_path}/x.png"]) in (0, 2)
    said = capsys.readouterr().out
    assert "CLOCK real | virtual" in said
    assert "The clocks differ: real time adds the lateness" in said


# Sweeps ---------------------------------------------------------------------------------------------------------------


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
    assert means["cubic", 10]["queue_delay_p50_ns_low"] < means["cubic", 10]["queue_delay_p50_ns"]
    assert means["reno", 80]["queue_delay_p50_ns_low"] is None
    assert stored.plot.queueing_delay()._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="there are: least_buffer"):
        stored.plot.nothing  # noqa: B018
    with pytest.raises(bs.InputError, match="has no data for least_buffer"):
        stored.plot.least_buffer()
    with pytest.raises(bs.InputError):
        bs.sweep(stored.directory / "runs")


def test_tables__become_those_of_pandas(stored: NotebookSweep) -> None:
    frame = stored.means.to_pandas()
    assert frame["cc"].to_list() == stored.means["cc"].to_list()
    assert frame["queue_delay_p99_ns"].to_list() == stored.means["queue_delay_p99_ns"].to_list()


# The example notebook -------------------------------------------------------------------------------------------------


NOTEBOOKS = sorted((CHECKOUT / "docs/notebooks").glob("*.ipynb"))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_notebook__runs_and_shows_tables_and_a_figure(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("BUFFERSCOPE_RESULTS", str(results))
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    (path,) = NOTEBOOKS
    notebook = nbformat.read(path, 4)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(path.parent)}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", []) if "data" in output]
    assert sum("image/png" in output["data"] for output in shown) == 1
    tables = [output["data"]["text/html"] for output in shown if "shape: " in output["data"].get("text/html", "")]
    assert len(tables) == 3
    assert "virtual/rep-1" in tables[1]
    assert "real/rep-1" in tables[1]
