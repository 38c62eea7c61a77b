# SPDX-License-Identifier: MIT
"""Runs jobs in parallel. GNU parallel schedules and ends them. A job's result is read from its directory alone.

No value of a spec reaches the shell of GNU parallel: the command is a constant, job names have only lower-case letters,
digits and '-', and the rest is in the environment. GNU parallel and its jobs end with this process, even after SIGKILL.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from experiments.machine import host
from experiments.machine.cell import FORWARDED
from experiments.setup.unpack import unpack
from experiments.spec import disk
from experiments.sweep import plan, remote_labs
from experiments.sweep.plan import JOB_ID
from experiments.sweep.remote_labs import RemoteLab
from lib import owner, syscalls
from lib.errors import RunError
from runs.job_state import make_room
from runs.names import PLAN, REPETITION, SWEEP_RUNS

COMMAND = 'exec "$BUFFERSCOPE_PYTHON" -m bufferscope job SWEEP="$BUFFERSCOPE_SWEEP" NAME={}'
# On a remote lab: the job's directory is sent back as one file. If the job leaves no repetition, the command fails, and
# another lab gets the job. Files of an earlier, killed sweep are removed first.
COMMAND_AWAY = (
    'rm -rf runs/{} {}.tar; "$BUFFERSCOPE_CHECKOUT/.venv/bin/python" -m bufferscope job SWEEP=. NAME={}; '
    "test -d runs/{}/rep-1 && tar -cf {}.tar runs/{} && rm -rf runs/{}"
)
HOME = ".engine"  # in the sweep's directory: GNU parallel's files; the next call removes those of a killed call
AWAY = ".away"  # in the sweep's directory: files from labs, until a job's files are complete
TRIES_AWAY = 3
MOST_SHARE = 2  # a lab may send this many times the estimated bytes of a repetition's files
POLL_S = 0.5
END_S = 20.0  # for jobs that are asked to end


def program() -> str:
    """Path of GNU parallel. Raises RunError if it is missing, or is another program of that name (moreutils)."""
    path = host.tool("parallel")
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout if path else ""
    if not path or not said.startswith("GNU parallel"):
        raise RunError("GNU parallel is missing; it runs a sweep's jobs; install it: apt-get install parallel")
    return path


def run(
    directory: Path, names: list[str], at_once: int, watch: Callable[[], None], labs: list[RemoteLab] | None = None
) -> None:
    """Runs the jobs `names` of the sweep in `directory` in that order, and calls `watch` every POLL_S. An exception of
    `watch` ends all jobs. With `labs` the jobs run on the labs, `at_once` on each lab; 0 means one per processor of the
    lab. Raises RunError if the engine itself fails. The caller holds the lock of the sweep's directory.
    """
    bad = [name for name in names if not JOB_ID.fullmatch(name)]
    if bad:
        raise RunError(f"{bad[0]!a} is not the name of a job")
    with _home(directory) as home:
        (home / "jobs").write_text("".join(f"{name}\n" for name in names))
        command = [
            program(), "--will-cite", "--plain", "--ungroup", "--jobs", str(at_once) if at_once else "100%",
            "--joblog", str(home / "log"), "--arg-file", str(home / "jobs"),
        ]  # fmt: skip
        command += _away(directory, home, labs) if labs else [COMMAND]
        with (home / "said").open("w") as said:
            process = subprocess.Popen(
                command, env=_environment(directory, home, labs), cwd=directory / AWAY if labs else host.CHECKOUT,
                stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True,
                preexec_fn=_begin,
            )  # fmt: skip
            came: set[str] = set()
            lifeline = _guard(process.pid)
            try:
                while not _ended(process):
                    _bring_in(directory, home, names, came)
                    watch()
                _bring_in(directory, home, names, came)
                shutil.rmtree(directory / AWAY, ignore_errors=True)
            except BaseException:
                _end(process)
                raise
            finally:
                with contextlib.suppress(BrokenPipeError):
                    os.write(lifeline, b"x")
                os.close(lifeline)
        # The exit status is the number of failed jobs, or 101 for more than 100. Jobs' directories have the details.
        words = (home / "said").read_text(errors="replace").splitlines()[-3:]
        if process.returncode > 101 or process.returncode < 0:
            raise RunError(f"GNU parallel ended with status {process.returncode}", *words)
        if labs and not came:
            raise RunError("no lab could run a job", *words)


@contextlib.contextmanager
def _home(directory: Path) -> Iterator[Path]:
    """An empty directory for GNU parallel, removed afterwards."""
    home = directory / HOME
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(mode=0o700)
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _away(directory: Path, home: Path, labs: list[RemoteLab]) -> list[str]:
    """Arguments for jobs on remote labs: the plan is sent, a job's directory is sent back and removed on the lab."""
    shutil.rmtree(directory / AWAY, ignore_errors=True)
    (directory / AWAY).mkdir()
    shutil.copy(directory / PLAN, directory / AWAY / PLAN)
    (home / "labs").write_text("".join(f"{lab.login}\n" for lab in labs))
    return [
        "--sshloginfile", str(home / "labs"), "--workdir", remote_labs.directory(labs[0].checkout, directory),
        "--basefile", PLAN, "--return", "{}.tar", "--cleanup", "--retries", str(TRIES_AWAY),
        "--env", "BUFFERSCOPE_CHECKOUT", "--env", "PYTHONPATH", COMMAND_AWAY,
    ]  # fmt: skip


def _bring_in(directory: Path, home: Path, names: list[str], came: set[str]) -> None:
    """Moves the files from labs into place. The repetition moves last, in one step: a reader that sees its summary must
    see all other files.
    """
    if not (directory / AWAY).is_dir() or not (home / "log").exists():
        return
    for line in (home / "log").read_text().splitlines()[1:]:
        name = names[int(line.split("\t", 1)[0]) - 1]
        packed, back = directory / AWAY / f"{name}.tar", directory / AWAY / SWEEP_RUNS / name
        if name in came or not packed.exists():
            continue
        job, _ = plan.read_job(directory, name)
        unpack(packed, name, directory / AWAY, MOST_SHARE * disk.estimate_bytes(job.spec))
        run_directory = directory / SWEEP_RUNS / name
        run_directory.mkdir(exist_ok=True)
        make_room(run_directory)
        for entry in (path for path in back.iterdir() if path.name != REPETITION):
            entry.replace(run_directory / entry.name)
        (back / REPETITION).rename(run_directory / REPETITION)
        owner.give(run_directory)
        packed.unlink()
        came.add(name)


def _environment(directory: Path, home: Path, labs: list[RemoteLab] | None) -> dict[str, str]:
    """The environment of GNU parallel, without the user's settings for GNU parallel."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PARALLEL")}
    return kept | {
        "PARALLEL_HOME": str(home),
        "PARALLEL_SHELL": "/bin/sh",
        "BUFFERSCOPE_PYTHON": sys.executable,
        "BUFFERSCOPE_SWEEP": str(directory),
        "BUFFERSCOPE_CHECKOUT": labs[0].checkout if labs else "",
        "PYTHONPATH": labs[0].checkout if labs else str(host.CHECKOUT),
        "PYTHONUNBUFFERED": "1",
    }


def _begin() -> None:
    """Runs in the child before GNU parallel. The parent may ignore the signal that _end() sends; the child must not."""
    for number in FORWARDED:
        signal.signal(number, signal.SIG_DFL)
    syscalls.die_with_parent()


def _ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(POLL_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def _guard(session: int) -> int:
    """Starts a process that kills the session when this process ends, in any way. GNU parallel alone would leave its
    ssh clients, and so the jobs on the labs, running. Returns a descriptor: a byte written to it ends the guard.
    """
    read_end, write_end = os.pipe()
    guard = os.fork()
    if guard == 0:
        try:
            os.close(write_end)
            if os.fork():
                os._exit(0)  # init adopts the child, so that nobody has to wait for it
            os.setsid()
            if not os.read(read_end, 1):
                _kill_session(session)
        finally:
            os._exit(0)
    os.close(read_end)
    os.waitpid(guard, 0)
    return write_end


def _kill_session(session: int) -> None:
    """SIGKILL to each process of a session. GNU parallel gives its jobs process groups of their own, so a signal to one
    process group would miss them.
    """
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            if int((process / "stat").read_text().rpartition(")")[2].split()[3]) == session:
                os.kill(int(process.name), signal.SIGKILL)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Asks GNU parallel to end, which ends its jobs, and waits END_S at most. Then kills all processes that remain in
    the session.
    """
    with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
        os.killpg(process.pid, signal.SIGINT)
        process.wait(END_S)
    _kill_session(process.pid)
    process.wait()
