# SPDX-License-Identifier: MIT
"""Unpacking a lab's archive accepts files of a run, up to a bound. Links, devices and other paths are refused, modes
and owners ignored.
"""

import io
import os
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.setup import unpack as unpack_module
from experiments.setup.unpack import unpack
from experiments.sweep import engine, plan
from experiments.sweep.spec import Sweep
from experiments.sweep.tests.conftest import probe
from lib.errors import RunError

JOB = "reno-n1-b10-0123456789-r1"
OWN = f"runs/{JOB}"
MOST = 1 << 20
KINDS = (
    "postcards.bsp", "tcp.bst", "goodput.bsg", "flows.bsf", "flows.parquet", "congestion/mycc.c", "client.stdout",
    "server.stderr", "figures/throughput-phone.svg",
)  # fmt: skip


def member(name: str, text: bytes = b"x", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(text)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, text


@pytest.fixture
def pack(tmp_path: Path) -> Callable[..., Path]:
    """A function that makes an archive with the usual members and the given ones, in a directory of its own."""

    def make(*more: tuple[tarfile.TarInfo, bytes]) -> Path:
        path = tmp_path / "away/packed.tar"
        path.parent.mkdir(exist_ok=True)
        usual = [
            member(OWN, b"", type=tarfile.DIRTYPE, mode=0o777),
            member(f"{OWN}/job.log"),
            member(f"{OWN}/rep-1/summary.json", mode=0o6777, uid=4711),
            member(f"{OWN}/rep-1/logs/console.log"),
            *(member(f"{OWN}/rep-1/{name}") for name in KINDS),
        ]
        with tarfile.open(path, "w") as archive:
            for info, text in (*usual, *more):
                archive.addfile(info, io.BytesIO(text))
        return path

    return make


def test_unpack__takes_a_run_without_modes_and_owners(pack: Callable[..., Path]) -> None:
    unfinished = [member(f"{OWN}/rep-1/{name}") for name in (".derived/a.bin", ".x.json.3", "logs/ansible/tmp/x")]
    packed = pack(*unfinished)
    left = packed.parent / OWN / "rep-1/left.json"
    left.parent.mkdir(parents=True)
    left.touch()
    unpack(packed, JOB, packed.parent, MOST)
    found = {str(path.relative_to(packed.parent / OWN)) for path in (packed.parent / OWN).rglob("*") if path.is_file()}
    assert found == {"job.log", "rep-1/summary.json", "rep-1/logs/console.log", *(f"rep-1/{name}" for name in KINDS)}
    about = (packed.parent / OWN / "rep-1/summary.json").stat()
    assert (stat.S_IMODE(about.st_mode) & 0o7133, about.st_uid) == (0, os.geteuid())


def test_engine__brings_in_what_a_lab_packed(pack: Callable[..., Path], small: Sweep, tmp_path: Path) -> None:
    job = plan.jobs(small, probe)[0]._replace(id=JOB)
    plan.write(tmp_path, small, [job])
    home, away = tmp_path / engine.HOME, tmp_path / engine.AWAY
    for directory in (home, away, tmp_path / "runs"):
        directory.mkdir()
    (home / "log").write_text("Seq\tHost\n1\tlab\n")
    came: set[str] = set()
    pack().rename(away / f"{JOB}.tar")
    engine._bring_in(tmp_path, home, [JOB], came)
    assert came == {JOB}
    assert (tmp_path / OWN / "rep-1/summary.json").read_text() == "x"
    assert (tmp_path / OWN / "job.log").exists()
    came.clear()
    pack(member("../planted")).rename(away / f"{JOB}.tar")
    with pytest.raises(RunError, match="is not what a lab packs"):
        engine._bring_in(tmp_path, home, [JOB], came)
    assert not came
    assert not (tmp_path.parent / "planted").exists()


def test_unpack__refuses_what_no_run_has(pack: Callable[..., Path], tmp_path: Path) -> None:
    hostile = {
        "a link out": member(f"{OWN}/rep-1/logs", b"", type=tarfile.SYMTYPE, linkname="/etc"),
        "a link inside": member(f"{OWN}/rep-1/a.json", b"", type=tarfile.SYMTYPE, linkname="summary.json"),
        "a hard link": member(f"{OWN}/rep-1/a.json", b"", type=tarfile.LNKTYPE, linkname=f"{OWN}/job.log"),
        "a device": member(f"{OWN}/rep-1/a.json", b"", type=tarfile.CHRTYPE, devmajor=1, devminor=3),
        "a FIFO": member(f"{OWN}/rep-1/a.json", b"", type=tarfile.FIFOTYPE),
        "a path above": member(f"{OWN}/../../../planted"),
        "a path with .. in a hidden directory": member(f"{OWN}/rep-1/.a/../../../../planted"),
        "an absolute path": member(f"{tmp_path}/planted"),
        "another job": member("runs/other-r1/rep-1/summary.json"),
        "a job whose name begins with this job's name": member(f"{OWN}x/rep-1/summary.json"),
        "another attempt": member(f"{OWN}/attempt-1/summary.json"),
        "a program": member(f"{OWN}/rep-1/run.sh"),
        "a name that a terminal obeys": member(f"{OWN}/rep-1/\x1b[31m.json"),
        "a deep path": member(f"{OWN}/rep-1/logs/a/b.log"),
        "too much": member(f"{OWN}/rep-1/postcards.bsp", b"x" * (MOST + 1)),
    }
    for what, one in hostile.items():
        packed = pack(one)
        with pytest.raises(RunError, match="is not what a lab packs") as refused:
            unpack(packed, JOB, packed.parent, MOST)
        assert str(refused.value).isprintable(), what
        assert not (tmp_path / "planted").exists(), what


def test_unpack__refuses_many_files_and_what_is_no_archive(
    pack: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    packed = pack()
    whole = packed.read_bytes()
    for content in (b"", b"no archive", whole[:700], b"\xff" * 2048):
        packed.write_bytes(content)
        with pytest.raises(RunError, match="is not what a lab packs"):
            unpack(packed, JOB, packed.parent, MOST)
    packed.write_bytes(whole)
    (tmp_path / "away/link.tar").symlink_to(packed)
    with pytest.raises(RunError, match="is not what a lab packs"):
        unpack(tmp_path / "away/link.tar", JOB, packed.parent, MOST)
    monkeypatch.setattr(unpack_module, "MOST_MEMBERS", 4)
    with pytest.raises(RunError, match="5 files"):
        unpack(packed, JOB, packed.parent, MOST)
