# SPDX-License-Identifier: MIT
"""Space for machines' memory, minus the memory that running machines may still take; errors are one line."""

import subprocess
import sys
from pathlib import Path

import pytest

from lib import memory_group
from virtual import memory


def process(proc: Path, pid: int, session: int, mem_mib: int, taken_mib: int, directory: str) -> None:
    process_directory = proc / str(pid)
    process_directory.mkdir(parents=True)
    (process_directory / "cmdline").write_bytes(b"linux\0ro\0mem=%dM\0bufferscope.seed=7\0--\0" % mem_mib)
    (process_directory / "stat").write_text(f"{pid} (a (b) c) S 1 {session} {session} 0\n")
    (process_directory / "status").write_text(f"Name:\tlinux\nRssShmem:\t{taken_mib << 10} kB\n")
    (process_directory / "environ").write_bytes(f"PATH=/bin\0TMPDIR={directory}\0".encode())


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fake /proc: a computer with 1000 MiB free and no running machine."""
    fake_proc = tmp_path / "proc"
    (fake_proc / "self").mkdir(parents=True)
    (fake_proc / "self/cgroup").write_text("0::/\n")
    (fake_proc / "meminfo").write_text(f"MemTotal: 99 kB\nMemAvailable:    {900 << 10} kB\nSwapFree: {100 << 10} kB\n")
    (fake_proc / "self/mountinfo").write_text(f"1 0 0:1 / / rw - ext4 x rw\n2 1 0:2 / {tmp_path}/shm rw - tmpfs x rw\n")
    (tmp_path / "shm").mkdir()
    monkeypatch.setattr(memory, "PROC", fake_proc)
    monkeypatch.setattr(memory_group, "CGROUPS", tmp_path / "cgroup")
    monkeypatch.setenv(memory.VARIABLE, str(tmp_path / "shm"))
    monkeypatch.setattr(memory, "CANDIDATES", (tmp_path,))
    return fake_proc


def test_problem__says_what_is_needed_where_and_what_to_do(
    proc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert memory.problem(400, 2) is None
    said = memory.problem(500, 2) or ""
    for words in (f"{tmp_path}/shm (from TMPDIR)", "1,032 MiB are needed for 2", "1,000 free", f"TMPDIR={tmp_path}"):
        assert words in said
    process(proc, 10, 10, 700, 100, f"{tmp_path}/shm")
    process(proc, 11, 10, 700, 100, f"{tmp_path}/shm")  # same session: a user-space process of machine 10
    process(proc, 12, 12, 900, 0, "/elsewhere")
    assert memory.problem(350) is None
    assert "has 1,000 free, of which other virtual machines may take 600;" in (memory.problem(400) or "")
    monkeypatch.setenv(memory.VARIABLE, "/nowhere")
    assert "/nowhere (from TMPDIR) cannot hold" in (memory.problem(1) or "")


def test_place__is_a_tmpfs_with_room_before_the_directory_that_tmpdir_names(
    tmp_path: Path, proc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "FALLBACK", tmp_path)
    monkeypatch.delenv(memory.VARIABLE)
    assert memory.place(1) == tmp_path  # in the fake /proc, neither candidate is a tmpfs
    monkeypatch.setattr(memory, "DEFAULT", tmp_path / "shm")
    for value in ("/nowhere", str(tmp_path)):
        monkeypatch.setenv(memory.VARIABLE, value)
        assert memory.place(900) == tmp_path / "shm"
    assert memory.place(990) == tmp_path


def test_problem__of_a_control_group_counts_its_own_machines(
    tmp_path: Path, proc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cgroup/job").mkdir(parents=True)
    for name, text in (("max", f"{700 << 20}"), ("current", f"{100 << 20}"), ("stat", "anon 1\n")):
        (tmp_path / f"cgroup/job/memory.{name}").write_text(text)
    (proc / "self/cgroup").write_text("0::/job\n")
    for pid, group in ((10, "job"), (11, "other")):
        process(proc, pid, pid, 150, 50, f"{tmp_path}/shm")
        (proc / f"{pid}/cgroup").write_text(f"0::/{group}\n")
    assert memory.problem(300, beside_mib=100) is None
    said = memory.problem(400, beside_mib=100) or ""
    assert f"{tmp_path}/cgroup/job has 600 of 700 free, of which other virtual machines may take 100" in said


@pytest.mark.software
def test_problem__of_real_file_systems(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib; from virtual import memory as m; print(m._problem(pathlib.Path(sys.argv[1]), 128, 1))"
    )
    mount = 'mount -t tmpfs -o "mode=755,$1" none "$2" && exec "$3" -c "$4" "$2"'
    for options, answer in (
        ("size=64m", "its file system has 64 free"),
        ("size=900m,noexec", "it is mounted noexec"),
        ("size=900m", "None"),
    ):
        words = ["unshare", "--mount", "sh", "-c", mount, "sh", options, str(tmp_path), sys.executable, program]
        result = subprocess.run(words, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
        assert answer in result.stdout
