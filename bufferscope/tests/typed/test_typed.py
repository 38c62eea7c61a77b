# SPDX-License-Identifier: MIT
"""Every command, every make target, and every line of the documentation's code blocks is typed in a clean clone, in its
shortest form, and its result is looked at (looks.py). What this machine lacks is named by the command, and skipped.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from bufferscope.commands import COMMANDS
from bufferscope.tests.typed.clone import Clone
from bufferscope.tests.typed.documents import blocks
from bufferscope.tests.typed.inputs import provide
from bufferscope.tests.typed.looks import LOOKS, targets, words_of

pytestmark = [pytest.mark.serial, pytest.mark.long]
SHELL_OF: dict[str, list[str]] = {}
for block in blocks():
    SHELL_OF.setdefault(block.document, []).extend(
        line for line in block.typed if not line.startswith(("python -m controlplane", "make test"))
    )
ALONE = ["help", "cc", "parameters", "advise-parameters", "build", "compile", "kernel", "p4", "lint", "format"]
TYPED = list(
    dict.fromkeys(
        [
            *(line for lines in SHELL_OF.values() for line in lines),
            *(
                f"bufferscope {name} {row.example}".strip()
                for name, row in COMMANDS.items()
                if name not in ("bench", "image")
            ),  # test_image.py makes one
            *(f"make {target}" for target in ALONE),
            "make bench PARTS=analysis SHORT=1",
        ]
    )
)
NOBODY = 65534


class Lack(NamedTuple):
    """Something that a machine may lack: the lines that need it, and what they say without it."""

    lines: str
    lacks: Callable[[], object]
    says: str


def no_cluster() -> bool:
    return not shutil.which("sinfo") or subprocess.run(["sinfo"], capture_output=True).returncode != 0


LACKS = (
    Lack("INVENTORY=", lambda: True, "error: .*ansible/inventories/testbed.*"),
    Lack("(?i)TARGET=bmv2", lambda: not shutil.which("simple_switch"), ".*simple_switch.*"),
    Lack("ENGINE=slurm", no_cluster, "error: .*Slurm.*"),
    Lack(r" p4$|^[^c].*my_aqm\.p4", lambda: not (shutil.which("p4c-bm2-ss") or "P4C" in os.environ), ".*p4c.*"),
    Lack(" stf ", lambda: True, "error: .*p4c.*"),  # a checkout of p4c
    Lack(" verify ", lambda: not shutil.which("bwrap"), "error: .*bubblewrap.*"),
    Lack("CLOCK=real", lambda: os.geteuid() != 0, "error: not root.*"),
)


def shortest(typed: str) -> str:
    """The same words, and others that only make the run shorter."""
    name, given = words_of(typed.rpartition("&& ")[2])
    if name == "experiment" and given.get("traffic") != "program":
        if "," in given.get("rate", ""):  # its steps have their times
            return typed
        virtual = given.get("clock") == "virtual" or os.geteuid() != 0
        kept = re.sub(r" (DURATION|WARMUP)=\S+", "", typed)
        return kept + (" WARMUP=50rtt DURATION=50rtt" if virtual else " WARMUP=1s DURATION=2s")
    more = {
        "advise": " BUDGET=60s" if "measure" in given else "", "sweep": " SMOKE=1", "figures": " SMOKE=1",
        "verify": " YES=1",  # instead of an answer at the terminal
    }  # fmt: skip
    return typed if "SMOKE=1" in typed or "DRAW=only" in typed else typed + more.get(name, "")


def run(clone: Clone, typed: str, user: int | None = None) -> None:
    """Types a line, and looks at its result."""
    line = typed if shutil.which("sudo") else typed.removeprefix("sudo ")
    parts = [words_of(part) for part in line.split(" && ")]
    paths = [clone.path / path.format_map(given) for name, given in parts for path in LOOKS[name].writes]
    for path in paths:
        subprocess.run(["rm", "-rf", path], check=True)
    done = clone.type(line, user)
    print(f"{done.seconds:.1f} s: {line}\n{done.said}")
    # A run in real time may be late, and an import has the runs of some figures only.
    assert done.status == 0 or done.made or "no valid run for figure" in done.said, done.said
    assert [path for path in paths if not path.exists()] == []
    name, given = parts[-1]
    LOOKS[name].at(clone, done, given)


@pytest.mark.parametrize("typed", TYPED)
def test_typed__does_what_it_says(typed: str, clone: Clone) -> None:
    for lack in LACKS:
        if re.search(lack.lines, typed) and lack.lacks():
            provide(clone, typed)
            done = clone.type(typed)
            said = re.findall(lack.says, done.said)
            assert done.status != 0
            assert said, done.said
            pytest.skip(f"{typed}: {said[0]}")
    line = shortest(typed)
    provide(clone, line)
    run(clone, line)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_ordinary_user__follows_the_tutorial(clone: Clone, tmp_path: Path) -> None:
    """His runs have a directory of their own, because the clone is root's."""
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    clone = Clone(clone.path, tmp_path / "results")
    tmp_path.chmod(0o777)
    python = Path(clone.path / ".venv/bin/python").resolve()
    if clone.type(f"{python} -V", NOBODY).status:
        pytest.skip(f"only root can run {python}")
    refused = clone.type(f"make experiment CLOCK=real RESULTS={clone.results}", NOBODY)
    assert "run the command again with sudo, or with CLOCK=virtual" in refused.said
    for typed in [
        "make experiment CC=cubic FLOWS=16",
        *(line for line in SHELL_OF["docs/tutorial.md"] if "MEASURE" not in line),
    ]:
        line = shortest(typed).replace("results/latest", f"{clone.results}/latest")
        run(clone, line + f" RESULTS={clone.results}" * (words_of(line)[0] in ("experiment", "runs")), NOBODY)


def test_clean__leaves_the_results(clone: Clone, tmp_path: Path) -> None:
    provide(clone, "results/latest")
    subprocess.run(["cp", "-a", "--reflink=auto", clone.path, tmp_path / "copy"], check=True)
    run(Clone(tmp_path / "copy"), "make clean")


def test_table__has_every_command_and_target() -> None:
    names = {words_of(part)[0] for typed in TYPED for part in typed.split(" && ")} | {"clean"}
    beside = {"test", "test-long", "test-slice", "test-all", "coverage", "check", "image"}  # test_image.py makes one
    assert sorted({*COMMANDS, *targets()} - names - beside) == []
