# SPDX-License-Identifier: MIT
"""Space for machines' memory, minus the memory that running machines may still take; errors are one line."""

from pathlib import Path

import pytest

from lib import memory_group
from virtual import memory


def process(proc: Path, pid: int, session: int, mem_mib: int, taken_mib: int) -> None:
    process_directory = proc / str(pid)
    process_directory.mkdir(parents=True)
    (process_directory / "cmdline").write_bytes(b"linux\0ro\0mem=%dM\0bufferscope.seed=7\0--\0" % mem_mib)
    (process_directory / "stat").write_text(f"{pid} (a (b) c) S 1 {session} {session} 0\n")
    (process_directory / "status").write_text(f"Name:\tlinux\nRssShmem:\t{taken_mib << 10} kB\n")


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fake /proc: a computer with 1000 MiB free and no running machine."""
    fake_proc = tmp_path / "proc"
    (fake_proc / "self").mkdir(parents=True)
    (fake_proc / "self/cgroup").write_text("0::/\n")
    (fake_proc / "meminfo").write_text(f"MemTotal: 99 kB\nMemAvailable:    {900 << 10} kB\nSwapFree: {100 << 10} kB\n")
    monkeypatch.setattr(memory, "PROC", fake_proc)
    monkeypatch.setattr(memory_group, "CGROUPS", tmp_path / "cgroup")
    return fake_proc


def test_problem__says_what_is_needed_and_what_to_do(proc: Path) -> None:
    assert memory.problem(400, 2) is None
    said = memory.problem(500, 2) or ""
    for words in ("1,032 MiB are needed for 2 at once", "1,000 are free:", "add swap space"):
        assert words in said
    process(proc, 10, 10, 700, 100)
    process(proc, 11, 10, 700, 100)  # same session: a user-space process of machine 10
    assert memory.problem(350) is None
    assert "1,000 are free, of which other virtual machines may take 600:" in (memory.problem(400) or "")


def test_problem__of_a_control_group_counts_its_own_machines(
    tmp_path: Path, proc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cgroup/job").mkdir(parents=True)
    for name, text in (("max", f"{700 << 20}"), ("current", f"{100 << 20}"), ("stat", "anon 1\n")):
        (tmp_path / f"cgroup/job/memory.{name}").write_text(text)
    (proc / "self/cgroup").write_text("0::/job\n")
    for pid, group in ((10, "job"), (11, "other")):
        process(proc, pid, pid, 150, 50)
        (proc / f"{pid}/cgroup").write_text(f"0::/{group}\n")
    assert memory.problem(300, beside_mib=100) is None
    said = memory.problem(400, beside_mib=100) or ""
    assert f"{tmp_path}/cgroup/job has 600 of 700 free, of which other virtual machines may take 100" in said
