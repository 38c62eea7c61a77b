# SPDX-License-Identifier: MIT
"""Whole sweeps in virtual time: killed, stopped, resumed, retried. The engine ends with the process that started the
engine.
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from analysis.tests import damages
from experiments.machine import host
from experiments.machine.host import CHECKOUT
from experiments.sweep import engine
from experiments.tests.conftest import MARK, wait_for
from hosts.tests.processes import processes
from lib import files
from lib.errors import RunError
from runs import run_table
from runs.job_state import State, look

pytestmark = pytest.mark.skipif(not host.tool("parallel"), reason="GNU parallel missing: apt-get install parallel")
TINY = """\
name: tiny
keep: summary
base: {clock: virtual, rate: 50mbit, rtt: 4ms, duration: 50rtt, warmup: 20rtt, buf: 10pkt, cc: reno}
grid: {flows: ['1', '2']}
"""


def command(file: Path, results: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "bufferscope", "sweep", f"SPEC={file}", f"RESULTS={results}", *words]


def processes_of(directory: Path) -> list[int]:
    """Processes of the sweep in `directory` that these tests started."""
    own = {MARK, f"BUFFERSCOPE_SWEEP={directory}".encode()}
    return processes("environ", lambda text: own <= set(text.split(b"\0")))


@pytest.mark.virtual
def test_sweep__killed_and_stopped_resumes_with_the_same_command(tmp_path: Path) -> None:
    file, results = tmp_path / "tiny.yaml", tmp_path / "results"
    file.write_text(TINY)
    runs = results / "tiny/runs"

    def begin() -> subprocess.Popen[str]:
        return subprocess.Popen(
            command(file, results), cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    killed = begin()
    assert wait_for(lambda: len(list(runs.glob("*/rep-1/spec.yaml"))) == 2, 240), killed.communicate(timeout=60)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert wait_for(lambda: not processes_of(results / "tiny")), processes_of(results / "tiny")

    def ended(*words: str) -> tuple[int, str, str]:
        done = subprocess.run(command(file, results, *words), cwd=CHECKOUT, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    with files.directory(results / "tiny") as held_by_another:
        fcntl.flock(held_by_another, fcntl.LOCK_EX)
        status, _, errors = ended()
    assert (status, errors.count("\n")) == (1, 1)
    assert "another make sweep works on it" in errors

    stopped = begin()
    assert wait_for(lambda: bool(processes_of(results / "tiny")), 240)
    stopped.send_signal(signal.SIGINT)
    _, said = stopped.communicate(timeout=240)
    assert stopped.returncode == 128 + signal.SIGINT
    assert "stopped by SIGINT; the same command resumes the sweep" in said
    assert not processes_of(results / "tiny")

    status, said, errors = ended()
    assert status == 0, errors + said
    assert "tiny: 2 of 2 runs are valid" in said
    assert f"tiny: report -> {results / 'tiny/report.html'}" in said
    assert "All 2 runs are there and valid." in (results / "tiny/report.html").read_text()
    table = run_table.read(results)
    assert (results / "index.parquet").exists()
    assert sorted(table["flows"].to_list()) == [1, 2]
    assert (table["valid"].all(), set(table["kept"]), set(table["attempt"])) == (True, {"summary"}, {1})
    for run in runs.iterdir():
        assert look(run).state is State.VALID
        assert (run / "rep-1/report.html").exists()
        assert not (run / "rep-1/postcards.bsp").exists()

    # A valid run is not repeated. A run that is not valid is reported, and repeated only if another attempt is allowed.
    first, second = sorted(runs.iterdir())
    before = (first / "rep-1/summary.json").stat().st_mtime_ns
    invalid = json.loads((second / "rep-1/summary.json").read_text()) | {"valid": False, "reasons": ["it was late"]}
    (second / "rep-1/summary.json").write_text(json.dumps(invalid))
    damages.accept(second / "rep-1", "summary.json")  # else the summary counts as damaged, and the run is repeated
    status, _, errors = ended()
    assert status == 2
    assert "not valid: flows=" in errors
    assert "it was late" in errors
    assert (first / "rep-1/summary.json").stat().st_mtime_ns == before
    assert ended("ATTEMPTS=2")[0] == 0
    assert sorted(run_table.read(results)["attempt"].to_list()) == [1, 2]


def test_engine__that_is_killed_leaves_only_files_that_the_next_removes(tmp_path: Path) -> None:
    sweep, temporary = tmp_path / "sweep", tmp_path / "temporary"
    program = (
        "import sys; from pathlib import Path; from experiments.sweep import engine\n"
        "engine.COMMAND = 'sleep 60; echo {}'\n"
        "engine.run(Path(sys.argv[1]), ['a'], 1, lambda: None)"
    )
    for directory in (sweep, temporary):
        directory.mkdir()
    killed = subprocess.Popen(
        [sys.executable, "-c", program, sweep], cwd=CHECKOUT, env=os.environ | {"TMPDIR": str(temporary)}
    )
    try:
        assert wait_for(lambda: bool(processes_of(sweep)))
    finally:
        killed.kill()
        killed.wait()
    assert wait_for(lambda: not processes_of(sweep))
    assert not list(temporary.iterdir())
    assert [path.name for path in sweep.iterdir()] == [engine.HOME]
    engine.run(sweep, [], 1, lambda: None)
    assert not list(sweep.iterdir())


def test_engine__runs_each_job_once_and_two_in_parallel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "said"
    # The first two jobs wait until both run, then 0.3 s longer: a third job must not start meanwhile.
    body = (
        'cd "$BUFFERSCOPE_SWEEP"; echo "begin {}" >>said; until [ $(grep -c begin said) -ge 2 ]; do sleep 0.05; done; '
        'sleep 0.3; echo "end {}" >>said; exit 2'
    )
    monkeypatch.setattr(engine, "COMMAND", body)
    engine.run(tmp_path, ["a-1", "b-2", "c-3", "d-4"], 2, lambda: None)
    lines = log.read_text().splitlines()
    names = ("a-1", "b-2", "c-3", "d-4")
    assert sorted(lines) == sorted(f"{what} {name}" for what in ("begin", "end") for name in names)
    at_once = [sum(1 if line.startswith("begin") else -1 for line in lines[: n + 1]) for n in range(len(lines))]
    assert max(at_once) == 2


def test_engine__leaves_jobs_the_users_directory_for_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "COMMAND", 'echo {} "$TMPDIR" >"$BUFFERSCOPE_SWEEP/said"')
    monkeypatch.setenv("TMPDIR", "/var/tmp")
    engine.run(tmp_path, ["a-1"], 1, lambda: None)
    assert (tmp_path / "said").read_text() == "a-1 /var/tmp\n"


def test_engine__refuses_names_that_a_shell_interprets_and_another_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a b", "$(touch x)", "a;b", "", "../a", "A"):
        with pytest.raises(RunError, match="is not the name of a job"):
            engine.run(tmp_path, [name], 1, lambda: None)
    monkeypatch.setattr(host, "tool", lambda name: "/bin/true")
    with pytest.raises(RunError, match="GNU parallel is missing"):
        engine.program()
