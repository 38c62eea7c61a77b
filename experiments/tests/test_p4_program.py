# SPDX-License-Identifier: MIT
"""An edit of a P4 source or of a wire definition never runs the old program: it is compiled, or refused."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.machine.host import CHECKOUT

EDITS = {
    "p4src/shared/queue_policy.p4": "const bit<8> UNUSED = 1;\n",
    "p4src/shared/headers.p4": "const bit<8> UNUSED = 1;\n",
    "wire/postcard.def": "FIELD(8, unused)\n",
}


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of its own, whose sources may change. It has the present state of the files that git tracks."""
    directory = tmp_path_factory.mktemp("clone")
    given = ["git", "-c", f"safe.directory={CHECKOUT}"]
    subprocess.run([*given, "clone", "--quiet", "--shared", str(CHECKOUT), str(directory)], check=True)
    changes = subprocess.run([*given, "diff", "--binary", "HEAD"], cwd=CHECKOUT, capture_output=True, check=True).stdout
    subprocess.run(["git", "apply", "--allow-empty"], cwd=directory, input=changes, check=True)
    return directory


def run(clone: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *words], cwd=clone, capture_output=True, text=True, check=False,
        env=os.environ | {"P4C": "/nowhere/p4c"} | environment,
    )  # fmt: skip


@pytest.mark.parametrize("command", [("experiment", "CLOCK=virtual"), ("experiment", "CLOCK=real"), ("deploy",)])
@pytest.mark.parametrize("source", EDITS)
def test_edit__is_refused_without_p4c_and_the_message_leads_back(
    source: str, command: tuple[str, ...], clone: Path
) -> None:
    with (clone / source).open("a") as file:
        file.write(EDITS[source])
    done = run(clone, "bufferscope", *command)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert source in done.stderr
    assert "make p4" in done.stderr
    back = re.search(r"git checkout \w+ -- [\w./ ]+\.(?:p4|def)", done.stderr)
    assert back
    subprocess.run(shlex.split(back[0]), cwd=clone, check=True, capture_output=True)
    assert run(clone, "p4src.compile.current").returncode == 0


def test_edit__is_compiled_where_p4c_is(clone: Path) -> None:
    """The compiler here gives the committed output: what counts is that it ran, and that the digest follows."""
    source = "p4src/shared/queue_policy.p4"
    text = (clone / source).read_text()
    compiler = clone / "p4c"
    committed = clone / "p4src/build/bufferscope"
    compiler.write_text(
        "#!/bin/sh\nfor last; do :; done\ngrep -q UNUSED p4src/shared/queue_policy.p4 || exit 1\n"
        f'cp {committed}.json "$3"\n'
    )
    compiler.chmod(0o755)
    before = (clone / "p4src/build/bufferscope.sha256").read_text()
    (clone / source).write_text(text + EDITS[source])
    done = run(clone, "p4src.compile.current", P4C=str(compiler))
    assert done.returncode == 0, done.stderr
    assert source in done.stdout
    after = (clone / "p4src/build/bufferscope.sha256").read_text()
    assert [line for line in after.splitlines()[1:] if line not in before] == [
        line for line in after.splitlines() if line.endswith(source)
    ]
    assert run(clone, "p4src.compile.current").stdout == ""
