# SPDX-License-Identifier: MIT
"""Packing and unpacking sweeps' runs."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from lib.errors import InputError
from runs import archive, thinned
from runs.names import MEASURES

REPETITION = "paper-sweep/runs/reno-n1-r1/rep-1"
FILES = ("THINNED", "digests.json", "environment.json", "spec.yaml", "summary.json", "distributions.parquet")


def make_run(results: Path, path: str = REPETITION, kept: str = "summary") -> None:
    (results / path).mkdir(parents=True)
    for name in FILES:
        (results / path / name).write_text(f"{kept}\n{name} of {path}")
    (results / path / "report.html").write_text("a page")
    (results / path / ".hidden").write_text("of a file manager")


def pack(tmp_path: Path, *paths: str) -> Path:
    file = tmp_path / "runs.tar.xz"
    archive.pack(file, tmp_path / "results", paths)
    return file


def test_unpack__restores_the_files_of_a_run_without_its_page(tmp_path: Path) -> None:
    make_run(tmp_path / "results")
    file = pack(tmp_path, REPETITION)
    assert archive.unpack(file, tmp_path / "other") == 1
    restored = tmp_path / "other" / REPETITION
    assert {path.name: path.read_text() for path in restored.iterdir()} == {
        name: (tmp_path / "results" / REPETITION / name).read_text() for name in FILES
    }


def test_unpack__does_not_change_an_existing_run(tmp_path: Path) -> None:
    make_run(tmp_path / "results")
    file = pack(tmp_path, REPETITION)
    own = tmp_path / "results" / REPETITION / "summary.json"
    own.write_text("measured here")
    assert archive.unpack(file, tmp_path / "results") == 0
    assert own.read_text() == "measured here"


def test_unpack__does_not_change_an_unfinished_run(tmp_path: Path) -> None:
    make_run(tmp_path / "results")
    file = pack(tmp_path, REPETITION)
    begun = tmp_path / "other" / REPETITION
    begun.mkdir(parents=True)
    (begun / "spec.yaml").write_text("begun")
    assert archive.unpack(file, tmp_path / "other") == 0
    assert [path.name for path in begun.iterdir()] == ["spec.yaml"]


def test_unpack__leaves_nothing_of_a_damaged_archive(tmp_path: Path) -> None:
    make_run(tmp_path / "results")
    file = pack(tmp_path, REPETITION)
    file.write_bytes(file.read_bytes()[:-60])
    with pytest.raises(InputError, match="is not an archive of runs"):
        archive.unpack(file, tmp_path / "other")
    assert list((tmp_path / "other").iterdir()) == []


def test_pack__takes_only_runs_thinned_to_their_summary(tmp_path: Path) -> None:
    make_run(tmp_path / "results")
    make_run(tmp_path / "results", "paper-sweep/runs/reno-n2-r1/rep-1", kept="tables")
    file = pack(tmp_path, REPETITION, "paper-sweep/runs/reno-n2-r1/rep-1")
    assert archive.unpack(file, tmp_path / "other") == 1
    assert (tmp_path / "other" / REPETITION).is_dir()


def test_pack__takes_a_run_with_tables_without_them_if_its_measures_are_stored(tmp_path: Path) -> None:
    make_run(tmp_path / "results", kept="flows")
    own = tmp_path / "results" / REPETITION
    (own / "flows.parquet").write_text("a table")
    (own / "digests.json").unlink()
    assert archive.unpack(pack(tmp_path, REPETITION), tmp_path / "none") == 0
    (own / MEASURES).write_text("{}")
    assert archive.unpack(pack(tmp_path, REPETITION), tmp_path / "other") == 1
    restored = tmp_path / "other" / REPETITION
    assert {path.name for path in restored.iterdir()} == {*FILES, MEASURES} - {"digests.json"}
    assert thinned.kept(restored) == "summary"
    assert (restored / "summary.json").read_text() == (own / "summary.json").read_text()


def test_pack__gives_the_same_bytes_for_the_same_runs(tmp_path: Path) -> None:
    make_run(tmp_path / "results")
    make_run(tmp_path / "results", "paper-sweep/runs/reno-n2-r1/rep-1")
    paths = (REPETITION, "paper-sweep/runs/reno-n2-r1/rep-1")
    first = pack(tmp_path, *paths).read_bytes()
    assert pack(tmp_path, *reversed(paths)).read_bytes() == first


@pytest.mark.parametrize(
    "name",
    ["/etc/passwd", f"../{REPETITION}/summary.json", f"{REPETITION}/../x.json", "paper/runs/a/rep-1/logs/x.log", "x"],
)
def test_unpack__refuses_files_outside_of_runs(tmp_path: Path, name: str) -> None:
    file = tmp_path / "runs.tar.xz"
    with tarfile.open(file, "w:xz") as packed:
        packed.addfile(tarfile.TarInfo(name), io.BytesIO())
    with pytest.raises(InputError, match="is not a file of a packed run"):
        archive.unpack(file, tmp_path / "other")
    assert list((tmp_path / "other").iterdir()) == []


@pytest.mark.parametrize("name", ["MOST_MEMBERS", "MOST_BYTES"])
def test_unpack__refuses_too_many_files_and_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    make_run(tmp_path / "results")
    file = pack(tmp_path, REPETITION)
    monkeypatch.setattr(archive, name, 1)
    with pytest.raises(InputError, match="is not an archive of runs: it has more than "):
        archive.unpack(file, tmp_path / "other")


def test_unpack__refuses_links(tmp_path: Path) -> None:
    file = tmp_path / "runs.tar.xz"
    link = tarfile.TarInfo(f"{REPETITION}/summary.json")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    with tarfile.open(file, "w:xz") as packed:
        packed.addfile(link)
    with pytest.raises(InputError, match="is not a file of a packed run"):
        archive.unpack(file, tmp_path / "other")


@pytest.mark.parametrize("length", [0, 10, 100])
def test_unpack__refuses_a_cut_archive(tmp_path: Path, length: int) -> None:
    make_run(tmp_path / "results")
    file = pack(tmp_path, REPETITION)
    file.write_bytes(file.read_bytes()[:length])
    with pytest.raises(InputError, match="is not an archive of runs"):
        archive.unpack(file, tmp_path / "other")


SECOND = "paper-sweep/runs/reno-n1-r2/rep-1"
THIRD = "paper-sweep/runs/reno-n1-r3/rep-1"


def pack_into(directory: Path, results: Path, by_repetition: dict[int, list[str]]) -> tuple[list[Path], list[int]]:
    with archive.packed(directory.parent, results, by_repetition) as packed:
        return packed.replace(directory), packed.left_out


def test_packed__is_a_file_for_each_repetition_and_replaces_all_others(tmp_path: Path) -> None:
    for path in (REPETITION, SECOND):
        make_run(tmp_path / "results", path)
    packed = tmp_path / "packed"
    files, left_out = pack_into(packed, tmp_path / "results", {1: [REPETITION], 2: [SECOND]})
    assert [file.name for file in files] == ["repetition-1.tar.xz", "repetition-2.tar.xz"]
    assert left_out == []
    assert archive.unpack_all(packed, tmp_path / "other") == 2
    before = files[0].read_bytes()
    pack_into(packed, tmp_path / "results", {1: [REPETITION]})
    assert [file.name for file in packed.iterdir()] == ["repetition-1.tar.xz"]
    assert files[0].read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "packed", "results"]


def test_packed__leaves_out_the_repetitions_that_a_repository_has_no_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (REPETITION, SECOND, THIRD):
        make_run(tmp_path / "results", path)
    by_repetition = {3: [THIRD], 1: [REPETITION], 2: [SECOND]}
    files, _ = pack_into(tmp_path / "packed", tmp_path / "results", by_repetition)
    monkeypatch.setattr(archive, "MOST_PACKED_BYTES", sum(file.stat().st_size for file in files[:2]))
    files, left_out = pack_into(tmp_path / "packed", tmp_path / "results", by_repetition)
    assert ([file.name for file in files], left_out) == (["repetition-1.tar.xz", "repetition-2.tar.xz"], [3])
    monkeypatch.setattr(archive, "MOST_PACKED_BYTES", 10)
    with pytest.raises(InputError, match=r"repetition 1 has 0 MiB; allowed .*; publish fewer points$"):
        pack_into(tmp_path / "packed", tmp_path / "results", by_repetition)
    assert sorted((tmp_path / "packed").iterdir()) == files
