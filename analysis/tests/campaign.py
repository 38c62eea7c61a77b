# SPDX-License-Identifier: MIT
"""Damages a copy of a stored run pseudo-randomly from a seed, and runs replay, what-if, every export, compare, runs and
the API on the copy.

A command passes if it refuses (a status that is not 0, one line on stderr, nothing written), or if it gives the answer
of the undamaged run. Replay with FORCE=1, and runs, also pass if they say that the run is not valid. All else is a
finding.

    python -m analysis.tests.campaign VARIANTS [SEED]      # VARIANTS of each kind of damage
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

import bufferscope as api
from analysis.tests import simulate
from analysis.tests.damages import KINDS, Files, damage, derived_of, files
from bufferscope import __main__ as bufferscope
from lib.errors import InputError, fail
from runs.names import ENVIRONMENT

EXPORTS = ("csv", "parquet", "pcapng", "flent", "telemetry-report")
COMMANDS = ("replay", "forced replay", "what-if", *EXPORTS, "compare", "runs", "api")
LONGEST_S = 30  # limit for one command; the slowest takes about one second
MOST_LINE = 1000  # characters of an error line


class Hang(BaseException):
    """A command did not end. Not a TimeoutError: that is an OSError, which commands catch and report in one line."""


@dataclass
class Outcome:
    """The result of a command."""

    status: int
    errors: list[str]
    answer: Files  # the files that the command writes
    failure: str = ""  # an exception or a timeout


@dataclass
class Campaign:
    """Damages copies of `run`. `other` supplies foreign files. `whole`: each command's outcome on the undamaged run."""

    run: Path
    other: Path
    scratch: Path
    whole: dict[str, Outcome] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for command in COMMANDS:
            self.whole[command] = self._outcome(self._copy(), command)
            assert self.whole[command].status == 0, self.whole[command]
            assert self.whole[command].answer, command

    def findings(self, kind: str, seed: int) -> tuple[list[str], Counter[str]]:
        """Runs every command on one damaged variant of the run. Returns a line for each finding, and the number of each
        outcome.
        """
        problems, counts = [], Counter[str]()
        for command in COMMANDS:
            directory = self._copy()
            what = damage(directory, self.other, kind, random.Random(seed))
            before = files(directory)
            outcome = self._outcome(directory, command)
            result, problem = self._judge(command, outcome, before, directory)
            counts[f"{command}: {result}"] += 1
            if problem:
                problems.append(f"{kind} {seed}, {what}: {command}: {problem}")
        return problems, counts

    def _judge(self, command: str, outcome: Outcome, before: Files, directory: Path) -> tuple[str, str]:
        """(the verdict: refused, same, not valid or wrong; the finding, if the verdict is wrong)."""
        if outcome.failure:
            return "wrong", outcome.failure
        if any(len(line) > MOST_LINE or not line.isprintable() for line in outcome.errors):
            return "wrong", f"a line that is too long or not printable: {outcome.errors}"
        if outcome.status == 0:
            same = outcome.answer == self.whole[command].answer
            if command == "runs" and not same:
                row, whole = (self._row(each) for each in (outcome, self.whole[command]))
                same = row | {"summary_mtime_ns": ""} == whole | {"summary_mtime_ns": ""}
                if row["valid"] == "false":
                    return "not valid", ""
            return (
                ("same", "") if same else ("wrong", f"another answer, no error: {self._differences(command, outcome)}")
            )
        if command == "compare" and outcome.status == 2:  # the numbers without the figure
            known = self.whole[command].answer["said"] or b""
            said = outcome.answer["said"] or b""
            return ("no figure", "") if said and known.startswith(said) else ("wrong", "other numbers, status 2")
        if command == "forced replay" and outcome.status == 2:
            summary = json.loads((directory / "summary.json").read_text())
            honest = summary["valid"] is False and summary["reasons"] and outcome.errors
            return ("not valid", "") if honest else ("wrong", "a damaged run that is called valid")
        if len(outcome.errors) != 1:
            return "wrong", f"{len(outcome.errors)} lines: {outcome.errors}"
        left = files(directory)
        changed = sorted(name for name in before.keys() | left.keys() if before.get(name) != left.get(name))
        more = sorted(path.name for path in self.scratch.iterdir() if path != directory.parent)
        return ("wrong", f"refused, but left {changed + more}") if changed or more else ("refused", "")

    def _row(self, outcome: Outcome) -> dict[str, str]:
        """The run's row of the table that `runs` printed."""
        (row,) = csv.DictReader(io.StringIO((outcome.answer["said"] or b"").decode()))
        return row

    def _differences(self, command: str, outcome: Outcome) -> list[str]:
        whole = self.whole[command].answer
        return sorted(name for name in whole.keys() | outcome.answer if whole.get(name) != outcome.answer.get(name))

    def _copy(self) -> Path:
        for path in self.scratch.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return Path(shutil.copytree(self.run, self.scratch / "run" / "rep-1"))

    def _outcome(self, directory: Path, command: str) -> Outcome:
        run, output = f"RUN={directory}", self.scratch / "out.flent.gz"
        words = {
            "replay": ["replay", run],
            "forced replay": ["replay", run, "FORCE=1"],
            "what-if": ["replay", run, "BUF=5p"],
            "compare": ["compare", str(self.other), str(directory), f"OUTPUT={output}.svg"],
            "runs": ["runs", f"RESULTS={self.scratch}", "--csv"],
        }.get(command, ["export", str(directory), "--format", command, "--output", str(output)])
        said = io.StringIO()
        status, errors, failure = bounded(
            lambda: shown(directory) if command == "api" else bufferscope.main(words), said
        )
        if command in ("compare", "runs", "api"):
            return Outcome(status, errors, {"said": said.getvalue().encode()}, failure)
        answer: Files = {}
        if not (failure or status):
            if command in EXPORTS:
                answer = files(output) if output.is_dir() else {"": output.read_bytes()}
            else:
                after = files(directory)
                new = ("whatif-2/", "report.html")
                names = [name for name in after if name.startswith(new)] if command == "what-if" else derived_of(after)
                answer = {name: after[name] for name in names}
        return Outcome(status, errors, answer, failure)


def shown(directory: Path) -> int:
    """Prints what the API says of a run."""
    try:
        run = api.open(directory)
        print(run.summary, run.spec, run.joined.height)
    except InputError as error:
        return fail([str(error)])
    return 0


def bounded(call: Callable[[], int], said: io.StringIO | None = None) -> tuple[int, list[str], str]:
    """(status, lines on stderr, an exception as text or "") of a command that must end within LONGEST_S."""

    def late(number: int, frame: FrameType | None) -> None:
        raise Hang(f"did not end within {LONGEST_S} s")

    errors = io.StringIO()
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(LONGEST_S)
    try:
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(said or io.StringIO()):
            return call(), errors.getvalue().splitlines(), ""
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic of polars is not an Exception
        return -1, errors.getvalue().splitlines(), f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# Runs to damage -------------------------------------------------------------------------------------------------------


def undrawn() -> contextlib.ExitStack:
    """Replaces figures by empty drawings: a figure takes a second to draw, and depends only on compared files."""

    stack = contextlib.ExitStack()
    for target, what in {
        "analysis.replay.derive.draw_all": _blank_figures,
        "analysis.whatif.figure.draw": _blank_queue,
        "analysis.figures.queues_compared.draw": _blank_depths,
        "analysis.replay.replay.drawing_pool": contextlib.nullcontext,
    }.items():
        stack.enter_context(mock.patch(target, what))
    return stack


def _blank_figures(analysed: Any, directory: Path, pool: Any) -> list[Any]:
    from analysis.figures import names

    for name in names(analysed.run.experiment):
        for kind in ("svg", "png"):
            (directory / f"{name}.{kind}").write_text(f'<svg viewBox="0 0 1 1"><!-- {name} --></svg>')
    return []


def _blank_depths(data: Any) -> Any:
    return mock.Mock()


def _blank_queue(directory: Path, *_: Any) -> None:
    for kind in ("svg", "png"):
        (directory / f"queue.{kind}").write_text('<svg viewBox="0 0 1 1"/>')


def made(directory: Path, seed: int) -> Path:
    """A small simulated repetition: recorded, analysed, and with a what-if."""
    simulate.write_run(directory, simulate.Scenario(duration_ns=300_000_000, warmup_ns=100_000_000, seed=seed))
    world = json.loads((directory / ENVIRONMENT).read_text())  # with the time, which differs between runs
    (directory / ENVIRONMENT).write_text(json.dumps(world | {"created_utc": f"2026-01-01T00:00:{seed:02}Z"}))
    simulate.record_digests(directory)
    with contextlib.redirect_stdout(io.StringIO()):
        assert bufferscope.main(["replay", f"RUN={directory}"]) == 0
        assert bufferscope.main(["replay", f"RUN={directory}", "BUF=7p"]) == 0
    return directory


def main(words: list[str]) -> int:
    """Prints each finding, and the number of each outcome. Returns 1 if there are findings."""
    count, seed = int(words[0]), int(words[1]) if len(words) > 1 else 1
    total: Counter[str] = Counter()
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="campaign-") as directory, undrawn():
        runs = [made(Path(directory) / name / "rep-1", number) for number, name in enumerate(("one", "two"), 1)]
        (scratch := Path(directory) / "scratch").mkdir()
        campaign = Campaign(runs[0], runs[1], scratch)
        for kind in KINDS:
            for number in range(count):
                problems, counts = campaign.findings(kind, seed * 1_000_000 + number)
                total.update({f"{kind}: {name}": n for name, n in counts.items()})
                wrong += len(problems)
                for line in problems:
                    print(line, flush=True)
    for name, number in sorted(total.items()):
        print(f"{number:6} {name}")
    print(f"{wrong} findings in {len(KINDS) * count} variants, each through {len(COMMANDS)} commands")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
