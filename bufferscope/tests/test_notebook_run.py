# SPDX-License-Identifier: MIT
"""Stored runs, as a notebook opens them: their content, errors for damaged files, and refused paths."""

import json
import warnings
from pathlib import Path

import matplotlib
import pytest

import bufferscope as bs
from analysis.tests import damages
from bufferscope.__main__ import main

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
    with pytest.raises(AttributeError, match="there are: queue_and_windows"):
        run.plot.nothing  # noqa: B018
    with pytest.raises(bs.InputError, match="allowed: joined, postcards, tcp"):
        run.table("rows")


def test_index__has_one_row_per_run(results: Path) -> None:
    assert bs.index(results)["run"].to_list() == ["real/rep-1", "virtual/rep-1"]
    with pytest.raises(bs.InputError, match="is not a directory"):
        bs.index(results / "none")


@pytest.mark.parametrize("name", ["summary.json", "joined.parquet", "postcards.parquet", "tcp.parquet"])
def test_damage__of_a_derived_file_is_an_error_of_one_line(fresh: Path, name: str) -> None:
    data = bytearray((fresh / name).read_bytes())
    data[len(data) // 2] ^= 1
    (fresh / name).write_bytes(data)
    with pytest.raises(bs.InputError, match=name) as failure:
        getattr(bs.open(fresh), name.split(".")[0])
    assert "\n" not in str(failure.value)


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
