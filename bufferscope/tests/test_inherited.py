# SPDX-License-Identifier: MIT
"""What a command inherits and cannot work with is one line before anything starts, and status 1."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.machine.host import CHECKOUT
from lib import memory_group

EXPERIMENT = ("experiment", "CC=cubic", "CLOCK=virtual")


def said(shell: str, *words: str, program: str = "-m bufferscope") -> list[str]:
    """The lines on stderr of a command that a shell starts, after `shell`; its status must be 1, its output empty."""
    script = f'{shell}; exec "$0" {program} "$@"'
    done = subprocess.run(
        ["bash", "-c", script, sys.executable, *words], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, ""), done
    return done.stderr.splitlines()


@pytest.mark.parametrize(
    ("shell", "words", "key"),
    [
        ("exec >&-", ("parameters",), "standard output is closed"),
        ("exec >/dev/full", ("parameters",), "standard output: No space left on device"),
        ("ulimit -v 500000", ("runs",), "(ulimit -v) is 500000 KiB"),
        ("ulimit -f 100", ("runs",), "(ulimit -f) is 100 KiB"),
        ("ulimit -s 100", ("runs",), "(ulimit -s) is 100 KiB"),
        ("ulimit -n 30", ("runs",), "(ulimit -n) is 30;"),
        ("ulimit -u 10", ("runs",), "(ulimit -u) is 10;"),
        ("export TMPDIR=/dev/null/none", EXPERIMENT, "TMPDIR=/dev/null/none is not a directory"),
        ("export TMPDIR= TMP=/proc", EXPERIMENT, "TMP=/proc is full"),
        ("export TMPDIR=build", EXPERIMENT, "TMPDIR=build is not an absolute path"),
    ],
)
def test_environment__that_no_run_survives_is_one_line(shell: str, words: tuple[str, ...], key: str) -> None:
    (line,) = said(shell, *words)
    assert key in line


def test_package__that_is_missing_or_broken_is_one_line(tmp_path: Path) -> None:
    program = "-c 'import sys; sys.modules[\"yaml\"] = None; from bufferscope.__main__ import main; sys.exit(main())'"
    (line,) = said("true", "show", "CC=cubic", program=program)
    assert "package yaml is missing" in line
    (tmp_path / "polars.py").write_text("raise ImportError('wrong ELF class', name='polars')")
    (line,) = said(f"export PYTHONPATH='{tmp_path}'", "runs")
    assert "package polars cannot be loaded (wrong ELF class)" in line


SETTLED = "import subprocess, sys; from lib import inherited; inherited.settle(); "


@pytest.mark.parametrize(
    ("shell", "program", "printed"),
    [
        (
            'export LC_ALL=de_DE.UTF-8 MPLBACKEND=nonsense PATH="$(dirname "$0"):$PATH"; exec <&-',
            "import matplotlib; print(sys.stdin.read()); "
            "subprocess.run(['ansible', '--version'], stdout=subprocess.DEVNULL, check=True)",
            "\n",
        ),
        # Descriptors that were closed are open in the programs that a command starts.
        ("exec <&- 2>&-", "subprocess.run(['readlink', '/proc/self/fd/0', '/proc/self/fd/2'])", f"{os.devnull}\n" * 2),
    ],
)
def test_environment__that_only_programs_would_refuse_changes_nothing(shell: str, program: str, printed: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'{shell}; exec "$0" -c "$1"', sys.executable, SETTLED + program],
        cwd=CHECKOUT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, printed, "")


@pytest.mark.parametrize(
    ("files", "free_mib"),
    [
        ({"memory.max": "max", "memory.current": "1"}, []),
        ({"memory.max": f"{300 << 20}", "memory.current": f"{100 << 20}", "memory.stat": "anon 5\n"}, [200]),
        (
            {
                "memory.max": f"{300 << 20}", "memory.high": f"{250 << 20}", "memory.current": f"{100 << 20}",
                "memory.stat": f"active_file {10 << 20}\nshmem {90 << 20}\nslab_reclaimable {1 << 20}",
            },
            [161],
        ),
    ],
)  # fmt: skip
def test_memory_group__has_its_limit_without_what_it_uses(
    files: dict[str, str], free_mib: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_group, "CGROUPS", tmp_path / "cgroup")
    (tmp_path / "cgroup/batch/job").mkdir(parents=True)
    (tmp_path / "process").mkdir()
    (tmp_path / "process/cgroup").write_text("1:name=systemd:/other\n0::/batch/job\n")
    for name, text in files.items():
        (tmp_path / "cgroup/batch" / name).write_text(text)
    assert [group.free_bytes >> 20 for group in memory_group.limited(tmp_path / "process")] == free_mib


@pytest.mark.software
@pytest.mark.skipif(os.geteuid() != 0, reason="making a control group needs root")
def test_memory_group__that_is_too_small_is_one_line() -> None:
    version_1 = memory_group.CGROUPS / "memory"
    group = (version_1 if version_1.is_dir() else memory_group.CGROUPS) / f"bufferscope-test-{os.getpid()}"
    limit = "memory.limit_in_bytes" if version_1.is_dir() else "memory.max"
    try:
        group.mkdir()
        (group / limit).write_text(str(100 << 20))
    except OSError as error:
        group.rmdir()
        pytest.skip(f"no control group can be made: {error}")
    try:
        (line,) = said(f"echo $$ >{group}/cgroup.procs", "runs")
        assert f"{group} has" in line
    finally:
        group.rmdir()
