# SPDX-License-Identifier: MIT
"""The table of commands: each explains itself, and refuses unknown words in one line. typed/ runs them."""

import signal
from pathlib import Path

import pytest

from bufferscope import __main__
from bufferscope.__main__ import main
from bufferscope.commands import COMMANDS
from experiments.host import CHECKOUT
from lib.errors import Interrupted
from lib.exit_codes import MEANINGS, Exit, of_parts
from lib.words import SWITCH, Key, read_words

KEYS = {
    "run": Key("a run"),
    "with": Key("another"),
    "force": Key("1: at once", "0", SWITCH),
    "flow_sizes": Key("sizes"),
}


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


def test_exit_codes__are_documented_as_they_are() -> None:
    text = (CHECKOUT / "docs/exit-codes.md").read_text()
    assert [
        line for line in (f"| {status} | {meaning} |" for status, meaning in MEANINGS.items()) if line not in text
    ] == []
    assert (Exit.DONE, Exit.NOTHING, Exit.DOUBTFUL) == (0, 1, 2)
    assert [of_parts(parts) for parts in ([], [0, 0], [1, 1], [0, 1], [2], [1, 2])] == [0, 0, 1, 2, 2, 2]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no command is given; bufferscope --help lists the commands"),
        (["expriment"], "expriment is not a command; did you mean experiment?"),
        (["\x1b[31m"], "\\x1b[31m is not a command; allowed: experiment, show"),
        (["replay"], "RUN is missing; say which run to analyse again"),
        (["replay", "RUN=/no\x1b[31m"], "'RUN=/no\\x1b[31m is not a run directory; allowed: one in results/"),
        (["replay", "x", "RUM=x"], "RUM is not a parameter of replay; did you mean RUN?"),
        (["export", "x", "--output=y", "--format"], "FORMAT has no value"),
        (["runs", "x", "--valid"], "x is not a parameter"),
        (["runs", "VALID=yes"], "VALID=yes is not known; allowed: 0, 1"),
        (["kernel", "FLOWS=1"], "FLOWS is not a parameter of kernel"),
        (["parameters", "CC=reno"], "CC is not a parameter of parameters"),
        (["completion", "tcsh"], "SHELL=tcsh is not known; allowed: bash"),
        (["bench", "swich"], "PARTS=swich is not a part; did you mean switch?"),
        (["sweep-report"], "SWEEP is missing"),
        (["import-artifact"], "FILE is missing"),
        (["experiment", "FLOW=1", "CLOCK=real"], "FLOW is not a parameter; did you mean FLOWS?"),
    ],
)
def test_mistake__is_one_line_and_nothing_is_written(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == Exit.NOTHING
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"error: {said}")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "given"),
    [
        (["RUN=a", "force=1"], {"run": "a", "force": "1"}),
        (["--run", "a", "--force"], {"run": "a", "force": "1"}),
        (["--run=a", "--force=0", "--flow-sizes", "14p"], {"run": "a", "force": "0", "flow_sizes": "14p"}),
        (["--force", "0", "RUN=a=b"], {"force": "0", "run": "a=b"}),
        (["--force", "RUN=a"], {"force": "1", "run": "a"}),
        (["a", "--force"], {"run": "a", "force": "1"}),
        (["a", "b", "--force"], {"run": "a", "with": "b", "force": "1"}),
        (["a", "with=b"], {"run": "a", "with": "b"}),
    ],
)
def test_words__are_read_alike_in_every_form(words: list[str], given: dict[str, str]) -> None:
    assert read_words(words, KEYS, ("run", "with")) == (given, [])


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
    def fails(given: object, errors: object) -> int:
        raise error

    monkeypatch.setattr(__main__, "_function", lambda command: fails)
    assert main(["runs"]) == status
    assert capsys.readouterr().err == said


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
