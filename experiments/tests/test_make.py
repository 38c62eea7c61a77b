# SPDX-License-Identifier: MIT
"""make hands all parameters to the program, unchanged and through no shell."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bufferscope.__main__ import main
from experiments.host import CHECKOUT

MAKEFILE = f"""
show:
	@cd {CHECKOUT}; \\
	{sys.executable} -c 'import json; from lib.words import made; print(json.dumps(made()))'
replay:
	@cd {CHECKOUT}; {sys.executable} -m bufferscope replay --make
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), []),
        (("CC=cubic", "FLOWS=16"), ["CC=cubic", "FLOWS=16"]),
        (("-s", "-k", "RTT=10ms"), ["RTT=10ms"]),
        (("COLOUR=red",), ["COLOUR=red"]),
        (("NAME=a b;touch x",), ["NAME=a b;touch x"]),
        (("NAME=a\\b",), ["NAME=a\\b"]),
        (("NAME='\"`",), ["NAME='\"`"]),
        (("BUF=",), ["BUF="]),
        (("V=1", "PYTHON=python3"), []),
    ],
)
def test_made__are_the_words_of_the_command_line(tmp_path: Path, words: tuple[str, ...], expected: list[str]) -> None:
    (tmp_path / "Makefile").write_text(MAKEFILE)
    done = subprocess.run(
        ["make", "--no-print-directory", *words, "show"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert sorted(json.loads(done.stdout)) == sorted(expected)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("words", "is_called"),
    [
        (("deploy",), False),
        (("experiment", "CC=cubic"), False),
        (("experiment", "TARGET=bmv2"), True),
        (("deploy", "TARGET=bmv2"), True),
        (("deploy", "INVENTORY=/nowhere"), True),
        (("deploy", "target=tofino"), True),
        (("deploy", "TARGT=tofino"), True),
    ],
)
def test_deploy__is_told_every_word(words: tuple[str, ...], is_called: bool) -> None:
    """Every word of `make deploy` reaches the program, which refuses unknown words. Before an experiment make calls the
    program only for TARGET (not soft) or INVENTORY.
    """
    command = ["make", "--no-print-directory", "--dry-run", "--assume-old=build/deployed", *words]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert ("bufferscope deploy --make" in done.stdout) is is_called, done.stdout


@pytest.fixture
def analysed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """The run and `force` of each call of the analysis. A stub replaces the analysis, which has its own tests."""
    calls: list[tuple[str, bool]] = []

    def replay_all(run: Path, force: bool, alone: bool, keep: str, ready: object) -> int:
        calls.append((str(run), force))
        return 2

    monkeypatch.setattr("analysis.replay.replay_all", replay_all)
    return calls


def test_replay__hands_the_run_on_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, analysed: list[tuple[str, bool]]
) -> None:
    run = tmp_path / "a b;$(touch x)"
    (run / "rep-1").mkdir(parents=True)
    assert main(["replay", f"RUN={run}"]) == 2
    assert main(["replay", f"RUN={run}", "FORCE=1"]) == 2
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-h/rep-1").mkdir(parents=True)
    main(["replay", "RUN=-h"])
    assert analysed == [(str(run), False), (str(run), True), ("-h", False)]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "error: RUN is missing; say which run to analyse again: make replay RUN=results/latest"),
        (("RUN=",), "error: RUN has no value; give one, or leave the key out"),
        (("RUN=/nowhere",), "error: RUN=/nowhere is not a run directory; allowed: one in results/, or a rep-<k> of one,"
         " as in make replay RUN=results/latest"),
        (("RUN=/nowhere", "FORCE=yes"), "error: FORCE=yes is not known; allowed: 0, 1"),
        (("RUN=/nowhere", "CC=reno"), "error: CC is not a parameter of replay; allowed: RUN, FORCE, KEEP, WAIT, "
         "ALONE, BUF, MODE, ECN_THRESHOLD, RATE"),
        (("RUN=/nowhere", "SPEC=x"), "error: SPEC is not a parameter of replay; allowed: RUN, FORCE, KEEP, WAIT, "
         "ALONE, BUF, MODE, ECN_THRESHOLD, RATE"),
        (("RUN=/no\x1b[31m",), "error: 'RUN=/no\\x1b[31m is not a run directory; allowed: one in results/, or a rep-<k>"
         " of one, as in make replay RUN=results/latest'"),
    ],
)  # fmt: skip
def test_replay__says_in_one_line_what_is_wrong(
    words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str], analysed: list[tuple[str, bool]]
) -> None:
    assert main(["replay", *words]) == 1
    output = capsys.readouterr()
    assert (output.out, output.err.splitlines(), analysed) == ("", [says], [])


def test_replay__through_make_runs_no_shell_on_its_value(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(MAKEFILE)
    value = f"{tmp_path}/a b; touch {tmp_path}/pwn"
    done = subprocess.run(["make", f"RUN={value}", "replay"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[0].startswith(f"error: RUN={value} is not a run directory")
    assert not (tmp_path / "pwn").exists()


def test_makefile__gives_no_value_of_the_command_line_to_a_shell() -> None:
    given = ("RUN=a;touch b", "FORCE=a;touch b", "CC=a;touch b", "NAME=a;touch b", "SPEC=a;touch b")
    kept = ("-o", ".venv/ready", "-o", "deploy", "-o", "build/deployed")
    for target in ("replay", "experiment", "parameters"):
        done = subprocess.run(
            ["make", "-n", *kept, *given, target], cwd=CHECKOUT, capture_output=True, text=True, check=True
        )
        assert "bin/bufferscope" in done.stdout
        assert "touch" not in done.stdout


def test_made__takes_nothing_from_the_environment_and_parameters_say_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Makefile").write_text(MAKEFILE)
    done = subprocess.run(
        ["make", "--no-print-directory", "RTT=10ms", "show"], cwd=tmp_path, capture_output=True, text=True, check=True,
        env=os.environ | {"FLOWS": "1", "CC": "reno"},
    )  # fmt: skip
    assert json.loads(done.stdout) == ["RTT=10ms"]
    assert main(["parameters"]) == 0
    assert "FLOWS=1 make experiment) sets no key." in capsys.readouterr().out
