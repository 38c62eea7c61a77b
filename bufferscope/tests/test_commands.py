# SPDX-License-Identifier: MIT
"""The table of commands: each explains itself, and refuses unknown words in one line. typed/ runs them. And
bash completes their names, keys, values and files.
"""

import pickle
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bufferscope import __main__, help_text
from bufferscope.__main__ import main
from bufferscope.commands import COMMANDS
from bufferscope.completion import SCRIPTS
from experiments.machine.host import CHECKOUT
from lib.errors import BadValue, Interrupted, SpecError
from lib.exit_codes import MEANINGS, Exit, of_parts
from lib.keys import Keys, Wrong, field, flag, read, table
from lib.quantities import Packets
from lib.words import PATHS, read_words


class Asked(Keys):
    run: Path = field("a run", default=None)
    with_: Path | None = field("another")
    force: bool = flag("1: at once")
    flow_sizes: Packets | None = field("sizes", Packets.within("1p", "20p"))

    def check(self, wrong: Wrong) -> None:
        if self.force and self.flow_sizes:
            wrong("force", "has no sizes")


KEYS = table(Asked)


def test_command__explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    for name, command in COMMANDS.items():
        for words in ([name, "--help"], [name, "x=1", "-h"], ["help", name]):
            assert main(words) == 0
            said = capsys.readouterr().out
            assert command.about in said
            for key, row in command.read_keys().items():
                assert f"  {key.upper()} " in said
                assert row.meaning.split()[0] in said


def test_overview__lists_every_command_and_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == main(["help"]) == 0
    said = capsys.readouterr().out
    assert [text for text in (*COMMANDS, *MEANINGS.values()) if text not in said] == []


def test_exit_codes__of_several_parts_are_one() -> None:
    assert (Exit.DONE, Exit.NOTHING, Exit.DOUBTFUL) == (0, 1, 2)
    assert [of_parts(parts) for parts in ([], [0, 0], [1, 1], [0, 1], [2], [1, 2])] == [0, 0, 1, 2, 2, 2]


def test_mistake__is_one_line_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for words, said in (
        ("", "no command"), ("expriment", "expriment "), ("\x1b[31m", "\\x1b[31m "), ("replay", "RUN "),
        ("replay RUN=/no\x1b[31m", "'RUN=/no\\x1b[31m "), ("replay x RUM=x", "RUM "),
        ("export x --output=y --format", "FORMAT "), ("runs x --valid", "x "), ("runs VALID=yes", "VALID=yes "),
        ("kernel FLOWS=1", "FLOWS "), ("parameters CC=reno", "CC "), ("completion tcsh", "SHELL=tcsh "),
        ("bench swich", "PARTS=swich "), ("sweep-report", "SWEEP "),
        ("experiment FLOW=1 CLOCK=real", "FLOW is not a parameter; did you mean FLOWS?"),
        ("experiment REVERSE=1 CLOCK=real", "REVERSE is not a parameter; allowed: CC, "),
        ("cc FOO=1", "FOO is not a parameter; allowed: none"), ("p4 check", "P4 "),
        ("sweep", "SPEC "), ("sweep SPEC=none.yaml", "none.yaml:"),
        ("sweep SPEC=x SMOKE=2", "SMOKE=2 "), ("sweep SPEC=x JOBS=0", "JOBS=0 "),
    ):  # fmt: skip
        assert main(words.split()) == Exit.NOTHING, words
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1), words
        assert err.startswith(f"error: {said}"), words
        assert list(tmp_path.iterdir()) == []


def test_words__are_read_alike_in_every_form() -> None:
    for words, given in (
        ("RUN=a force=1", {"run": "a", "force": "1"}),
        ("--run a --force", {"run": "a", "force": "1"}),
        ("--run=a --force=0 --flow-sizes 14p", {"run": "a", "force": "0", "flow_sizes": "14p"}),
        ("--force 0 RUN=a=b", {"force": "0", "run": "a=b"}),
        ("--force RUN=a", {"force": "1", "run": "a"}),
        ("a b --force", {"run": "a", "with": "b", "force": "1"}),
        ("a with=b", {"run": "a", "with": "b"}),
    ):
        assert read_words(words.split(), KEYS, ("run", "with")) == (given, []), words


def test_model__has_typed_values_and_all_errors_at_once() -> None:
    asked = read(Asked, {"run": "a", "flow_sizes": "14p"}, [])
    assert (asked.run, asked.with_, asked.force) == (Path("a"), None, False)
    assert (str(asked.flow_sizes), asked.flow_sizes and asked.flow_sizes.base_units) == ("14p", 14)
    assert pickle.loads(pickle.dumps(asked)) == asked
    for words, wrong in (
        ({}, ["RUN"]),
        ({"with": "b", "force": "2", "flow_sizes": "21p", "sice": "1"}, ["RUN", "FORCE", "FLOW_SIZES", "SICE"]),
        ({"run": "a", "with": "b", "force": "1", "flow_sizes": "1p"}, ["FORCE"]),  # a rule between keys
    ):
        with pytest.raises(SpecError) as failure:
            read(Asked, words, [BadValue("WITH", None, "is given twice")])
        assert [error.key for error in failure.value.errors] == ["WITH", *wrong]


def test_page_of_keys__is_current() -> None:
    assert (CHECKOUT / "docs/keys.md").read_text() == help_text.page() + "\n", "run what the page's first line says"


def test_word__given_twice_or_in_the_wrong_place_is_an_error() -> None:
    for words, said in ((["a", "RUN=b"], "RUN=b is given twice"), (["RUN=a", "b"], "b is not a parameter")):
        _, (error,) = read_words(words, KEYS, ("run",))
        assert str(error).startswith(said)


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (Interrupted(signal.SIGTERM), 128 + signal.SIGTERM, "error: ended by SIGTERM\n"),
        (KeyboardInterrupt(), 128 + signal.SIGINT, "error: ended by SIGINT\n"),
        (OSError(28, "No space left on device", "/x"), 1, "error: /x: No space left on device\n"),
    ],
)
def test_end__of_a_command_is_one_line_and_a_status(
    error: BaseException, status: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(asked: object) -> int:
        raise error

    monkeypatch.setattr(__main__, "_function", lambda command: fails)
    assert main(["runs"]) == status
    assert capsys.readouterr().err == said


@pytest.mark.long
def test_runs__lists_filters_and_gives_csv(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", f"RESULTS={results}"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["run", "clock", "cc"]
    assert [row.split()[0] for row in rows] == ["real/rep-1", "virtual/rep-1"]  # in the order of their analyses
    assert main(["runs", "--results", str(results), "cc=reno", "flows=2", "--valid", "--csv"]) == 0
    header, row = capsys.readouterr().out.splitlines()
    assert dict(zip(header.split(","), row.split(","), strict=False))["run"] == "virtual/rep-1"
    for words, said in (("cc=bbr", "no run has cc=bbr"), ("flows=x", "FLOWS=x is not a number")):
        assert main(["runs", f"RESULTS={results}", words]) == 1
        assert said in capsys.readouterr().err


# Completion in bash ---------------------------------------------------------------------------------------------------


def in_bash(lines: list[str], script: Path) -> dict[str, list[str]]:
    """The completions that bash offers for each line, with the cursor at its end."""
    program = (
        'source "$1"; shift; compopt() { :; }; for COMP_LINE; do COMP_POINT=${#COMP_LINE}; _bufferscope; '
        'echo "${COMPREPLY[@]}"; done'
    )
    command = ["bash", "-c", program, "-", str(script), *lines]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return dict(zip(lines, (line.split() for line in done.stdout.splitlines()), strict=True))


def test_completion__completes_commands_keys_values_and_files_in_bash(tmp_path: Path) -> None:
    script = tmp_path / "completion"
    command = [sys.executable, "-m", "bufferscope", "completion", "bash"]
    script.write_bytes(subprocess.run(command, cwd=CHECKOUT, capture_output=True, check=True).stdout)
    expected = {"exp": ["experiment", "export"], "": [*COMMANDS, "help", "--help"], "figures spang": ["spang2021"]}
    expected |= {"completion ": ["SHELL="], "completion z": ["zsh"]}
    for name, row in COMMANDS.items():
        keys = row.read_keys()
        expected[f"{name} --"] = [*(f"--{key.replace('_', '-')}" for key in keys), "--help", "--make"]
        for key in keys:
            expected[f"{name} {key}"] = [f"{other.upper()}=" for other in keys if other.startswith(key)]
            if keys[key].values and keys[key].values != PATHS:
                expected[f"{name} {key}="] = expected[f"{name} --{key.replace('_', '-')} "] = list(keys[key].values)
    expected[f"replay RUN={tmp_path}/comp"] = expected[f"compare a {tmp_path}/comp"] = [str(script)]
    offered = in_bash([f"bufferscope {line}" for line in expected], script)
    found = {line: offered[f"bufferscope {line}"] for line in expected}
    assert {line: words for line, words in found.items() if words != expected[line]} == {}
    assert COMMANDS["completion"].read_keys()["shell"].values == tuple(SCRIPTS)
