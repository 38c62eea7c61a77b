# SPDX-License-Identifier: MIT
"""`experiment` and `show` commands in README.md, docs/ and the READMEs of top directories resolve; indented commands
are not checked. Spec files exist if README.md, experiments/README.md or parameters.py names them. ARCHITECTURE.md names
every top directory. Every top directory except docs/, and every Ansible role, has a README. A directory one level below
(not in docs/, and not tests/) has a README, or the README above names it.
"""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from bufferscope.__main__ import main
from experiments import host
from experiments.host import CHECKOUT, Host

# A command at the start of a line or after a backtick. Patterns (KEY=VALUE...), commands without
# words, and the Makefile's own call (--make) do not count.
COMMAND = re.compile(
    r"(?:^[ \t]*|`)(?:make experiment|(?:\.venv/bin/)?bufferscope (?:experiment|show)) +([^`\n]*)", re.MULTILINE
)
DOCUMENTS = [CHECKOUT / "README.md", *sorted(CHECKOUT.glob("docs/**/*.md")), *sorted(CHECKOUT.glob("[a-z]*/README.md"))]


def examples(text: str) -> list[list[str]]:
    commands = [shlex.split(match[1], comments=True) for match in COMMAND.finditer(text)]
    return [
        words
        for words in commands
        if words and not any(re.match(r"\W*KEY=|--make$|\W*\.\.\.$", word) for word in words)
    ]


CASES = [
    pytest.param(words, id=f"{path.relative_to(CHECKOUT)}: {' '.join(words)}")
    for path in DOCUMENTS
    for words in examples(path.read_text())
]


@pytest.mark.parametrize("words", CASES)
def test_example__resolves(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The current directory is like the checkout, and has the files that the documentation tells the user to make."""
    for entry in CHECKOUT.iterdir():
        (tmp_path / entry.name).symlink_to(entry)
    shutil.copy(CHECKOUT / "hosts/congestion/template/mycc.c", tmp_path)
    (tmp_path / "sizes.txt").write_text("1000 0\n100000 1\n")
    monkeypatch.setattr(host, "probe", lambda want_netem: Host(("bbr", "cubic", "reno"), netem=True))
    monkeypatch.chdir(tmp_path)
    assert main(["show", *words]) == 0, capsys.readouterr().err


def test_examples__are_found() -> None:
    assert len(examples((CHECKOUT / "README.md").read_text())) >= 3
    text = (
        "make experiment CC=reno  # why\nsee `make experiment SPEC=x BUF=1p` and `make experiment KEY=VALUE...`,\n"
        "`bufferscope experiment --rtt 5ms`, `FLOWS=1 make experiment`\n"
    )
    assert examples(text) == [["CC=reno"], ["SPEC=x", "BUF=1p"], ["--rtt", "5ms"]]


def test_spec_files__that_are_named_exist() -> None:
    for path in (CHECKOUT / "README.md", CHECKOUT / "experiments/README.md", CHECKOUT / "experiments/parameters.py"):
        for spec in re.findall(r"experiments/specs/[\w-]+\.yaml", path.read_text()):
            assert (CHECKOUT / spec).is_file(), f"{path} names {spec}"


def test_architecture__names_every_directory() -> None:
    command = ["git", "-c", f"safe.directory={CHECKOUT}", "ls-files"]
    tracked = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout.splitlines()
    top = {path.partition("/")[0] for path in tracked if "/" in path and not path.startswith(".")}
    text = (CHECKOUT / "ARCHITECTURE.md").read_text()
    assert sorted(name for name in top if f"`{name}/`" not in text) == []
    assert sorted(name for name in top - {"docs"} if not (CHECKOUT / name / "README.md").exists()) == []
    roles = [role for role in (CHECKOUT / "ansible/roles").iterdir() if role.is_dir()]
    assert [role.name for role in roles if not (role / "README.md").exists()] == []


def test_readmes__name_the_directories_below_that_have_no_readme() -> None:
    files = subprocess.run(["git", "ls-files"], cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
    below = {Path(name).parts[:2] for name in files.splitlines() if len(Path(name).parts) > 2}
    silent = [
        f"{top}/{name}"
        for top, name in sorted(below)
        if top not in ("docs", ".ci")
        and name not in ("tests", "build")
        and not (CHECKOUT / top / name / "README.md").exists()
        and f"{name}/" not in (CHECKOUT / top / "README.md").read_text()
    ]
    assert silent == []
