# SPDX-License-Identifier: MIT
"""Stored runs, as a notebook opens them: their content, errors for damaged files, and refused paths."""

import json
import warnings
from pathlib import Path

import pytest

import bufferscope as bs
from runs import record


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
    for name in dir(run.plot):
        assert getattr(run.plot, name)()._repr_png_().startswith(b"\x89PNG"), name
    with pytest.raises(AttributeError, match="there are: queue_and_windows"):
        run.plot.nothing  # noqa: B018
    with pytest.raises(bs.InputError, match="allowed: joined, postcards, tcp"):
        run.table("rows")


def test_plot__leaves_the_style_of_the_notebook_alone(results: Path) -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    bs.open(results / "latest").plot.utilization()
    assert dict(matplotlib.rcParams) == before


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


@pytest.mark.parametrize("name", ["joined.parquet", "summary.json"])
def test_file__that_is_gone_or_no_table_is_one_line(fresh: Path, name: str) -> None:
    (fresh / name).unlink()
    with pytest.raises(bs.InputError, match=name if name != "summary.json" else "is not analysed"):
        _ = bs.open(fresh).joined


def test_damage__of_raw_files_leaves_no_figure(fresh: Path) -> None:
    with (fresh / "postcards.bsp").open("r+b") as file:
        file.seek(5000)
        file.write(b"xx")
    with pytest.raises(bs.InputError, match=r"postcards\.bsp: damaged"):
        bs.open(fresh).plot.queue_and_windows()


def test_run__that_is_not_valid_warns_once_with_its_first_reason(fresh: Path) -> None:
    summary = json.loads((fresh / "summary.json").read_text()) | {"valid": False, "reasons": ["it was late", "x"]}
    (fresh / "summary.json").write_text(json.dumps(summary))
    record.add_derived(fresh, "summary.json")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = bs.open(fresh)
        assert (run.valid, len(run.joined) > 0) == (False, True)
    (said,) = [warning for warning in caught if "NOT VALID" in str(warning.message)]
    assert str(said.message) == f"{fresh}: NOT VALID: it was late"
    assert said.filename == __file__


def test_open__refuses_a_path_without_a_single_run(results: Path, tmp_path: Path) -> None:
    for path, said in ((tmp_path, "is not a run"), (tmp_path / "none", "is not a run"), (results, "is not a run")):
        with pytest.raises(bs.InputError, match=said):
            bs.open(path)
    for number in (1, 2):
        (tmp_path / f"rep-{number}").mkdir()
        (tmp_path / f"rep-{number}/spec.yaml").write_text("")
    with pytest.raises(bs.InputError, match="has 2 repetitions; allowed: one repetition"):
        bs.open(tmp_path)
    with pytest.raises(bs.InputError, match="is not analysed; bufferscope replay"):
        bs.open(tmp_path / "rep-1")
