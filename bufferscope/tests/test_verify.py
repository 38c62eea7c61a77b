# SPDX-License-Identifier: MIT
"""A run is packed and verified: same bytes, other bytes, files that were changed, and programs that try to get out."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bufferscope.__main__ import main
from lib.places import CHECKOUT
from runs import packed

pytestmark = [
    pytest.mark.long,
    pytest.mark.virtual,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap"),
]
EXPERIMENT = (
    "experiment",
    "CLOCK=virtual",
    "CC=reno",
    "FLOWS=1",
    "RATE=10mbit",
    "RTT=10ms",
    "DURATION=1s",
    "WARMUP=1s",
)
Say = Callable[..., tuple[int, str]]
Changes = dict[str, Callable[[bytes], bytes]]
OUT = """
import os, socket, sys
def tried(what, do):
    try:
        do()
    except OSError:
        return
    print("error: got out:", what, file=sys.stderr)
home = {home!r}
tried("read a home", lambda: os.listdir(home))
tried("wrote", lambda: open(home + "/made", "w"))
tried("wrote to /usr", lambda: open("/usr/made", "w"))
tried("read a secret", lambda: open("/etc/shadow"))
tried("was root", lambda: os.setuid(0))
tried("reached a network", lambda: socket.create_connection(("127.0.0.1", {port})))
tried("saw a process", lambda: os.kill({process}, 0))
print("error: tried as", os.getuid(), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("packed")
    assert main([*EXPERIMENT, f"RESULTS={results}"]) == 0
    assert main(["pack", f"{results}/latest", f"OUTPUT={results}/a.packed"]) == 0
    return results / "a.packed"


@pytest.fixture
def said(capfd: pytest.CaptureFixture[str]) -> Say:
    def run(*words: str) -> tuple[int, str]:
        status = main([*words])
        out, err = capfd.readouterr()
        return status, out + err

    return run


def changed(file: Path, into: Path, changes: Changes) -> Path:
    """The packed run with changed files and the manifest to match, as a stranger could make it."""
    with packed.opened(file, 10**9) as (content, archive):
        contents: dict[str, Path | bytes] = {path: archive.read(path) for path in content.files}
        for end, change in changes.items():
            (path,) = [path for path in contents if path.endswith(end)]
            before = contents[path]
            assert isinstance(before, bytes)
            contents[path] = change(before)
            assert contents[path] != before
    output = into / "changed.packed"
    with output.open("wb") as made:
        packed.write(made, content.about, contents)
    return output


def test_verify__asks_then_gives_the_same_bytes(file: Path, said: Say) -> None:
    status, text = said("verify", str(file))
    assert (status, "running a stranger's programs needs a yes" in text) == (1, True), text
    status, text = said("verify", str(file), "YES=1")
    assert (status, "the same bytes in" in text) == (0, True), text
    status, text = said("verify", str(file), "WITH=own", "YES=1")
    assert (status, "the same bytes in" in text) == (0, True), text


@pytest.mark.parametrize(
    ("source", "word"),
    [("hosts/congestion/template/mycc.c", "CC=./mycc.c"), ("p4src/aqm/build/codel.json", "P4=codel.json")],
    ids=["cc", "p4"],
)
def test_verify__repeats_a_run_with_code_of_its_packer(
    said: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, word: str
) -> None:
    """With another locale, time zone and number of processors, from another directory, the same bytes."""
    shutil.copy(CHECKOUT / source, tmp_path)
    monkeypatch.chdir(tmp_path)
    status, text = said(*(each for each in EXPERIMENT if each[:3] != word[:3]), "RESULTS=results", word)
    assert status == 0, text
    status, text = said("pack", "results/latest", "OUTPUT=own.packed")
    assert status == 0, text
    (tmp_path / Path(source).name).unlink()
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        status, text = said("verify", "own.packed", "YES=1")
    finally:
        os.sched_setaffinity(0, before)
    assert (status, "the same bytes in" in text) == (0, True), text


def test_verify__shows_the_numbers_that_other_programs_change(file: Path, said: Say, tmp_path: Path) -> None:
    other_seed = changed(
        file, tmp_path, {"virtual/machine.py": lambda text: text.replace(b"(job.seed)", b"(job.seed + 1)")}
    )
    status, text = said("verify", str(other_seed), "YES=1")
    assert status == 2, text
    assert "raw files differ: " in text
    assert "B - A" in text


def test_verify__refuses_a_run_that_was_changed(file: Path, said: Say, tmp_path: Path) -> None:
    for end, problem in (("rep-1/tcp.bst", "tcp.bst: "), ("rep-1/spec.yaml", "spec.yaml: ")):
        status, text = said("verify", str(changed(file, tmp_path, {end: lambda data: data + b"\n"})), "YES=1")
        assert (status, problem in text) == (1, True), text


def test_verify__takes_no_files_beside_runs_and_programs(file: Path, said: Say, tmp_path: Path) -> None:
    """Python would import such files before this machine's programs."""
    with packed.opened(file, 10**9) as (content, archive):
        contents: dict[str, Path | bytes] = {path: archive.read(path) for path in content.files}
    for path in ("own/sitecustomize.py", "again/x/rep-1/environment.json", "sitecustomize.py"):
        with (tmp_path / "more.packed").open("wb") as made:
            packed.write(made, content.about, contents | {path: b"raise SystemExit(3)"})
        status, text = said("verify", str(tmp_path / "more.packed"), "WITH=own", "YES=1")
        assert (status, "neither of a run nor of its programs" in text) == (1, True), text


def test_verify__takes_no_run_from_programs_that_fail(file: Path, said: Say, tmp_path: Path) -> None:
    failing = changed(file, tmp_path, {"program/bufferscope/__main__.py": lambda _: b"raise SystemExit(7)"})
    status, text = said("verify", str(failing), "YES=1")
    assert (status, "could not be run again (status 7)" in text) == (1, True), text


def test_verify__lets_no_program_out(file: Path, said: Say, tmp_path: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        program = OUT.format(home=str(tmp_path), port=server.getsockname()[1], process=os.getpid())
        hostile = changed(file, tmp_path, {"program/bufferscope/__main__.py": lambda _: program.encode()})
        status, text = said("verify", str(hostile), "YES=1")
    assert status == 1, text
    assert "got out" not in text, text
    assert f"tried as {65534 if os.geteuid() == 0 else os.getuid()}" in text, text
    assert not (tmp_path / "made").exists()


def test_unpack__runs_nothing(file: Path, said: Say, tmp_path: Path) -> None:
    status, text = said("unpack", str(file), f"OUTPUT={tmp_path}/here")
    assert status == 0, text
    status, text = said("replay", next(iter((tmp_path / "here/results").iterdir())).as_posix())
    assert (status, "byte for byte" in text) == (0, True), text
