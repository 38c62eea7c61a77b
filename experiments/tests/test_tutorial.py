# SPDX-License-Identifier: MIT
"""Every make command of docs/tutorial.md runs, in the tutorial's order, and its output has the words of SAYS."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from bufferscope.commands import COMMANDS
from experiments.host import CHECKOUT
from experiments.lab import virtual as virtual_lab

TEXT = (CHECKOUT / "docs/tutorial.md").read_text()
LINES = [shlex.split(line) for line in re.findall(r"^    make (.+)$", TEXT, re.MULTILINE)]
# Words in the output of each command; with MEASURE=1 `advise` prints others.
SAYS = {
    "experiment": "Cubic",
    "replay": "Senders would have reacted",
    "advise": "Start with BUF=",
    "runs": "utilization",
    "compare": "One setting differs: BUF 1 BDP (81 packets) | 0.1 BDP (8 packets)",
}


def test_tutorial__names_commands_and_keys_that_exist() -> None:
    assert {line[0] for line in LINES} == {"experiment", "replay", "advise", "runs", "compare"}
    unknown = [
        word
        for name, *words in LINES
        for word in words
        if word.partition("=")[0].lower() not in COMMANDS[name].read_keys()
    ]
    assert unknown == []
    linked = re.findall(r"\]\(([\w./-]+)\)", TEXT)
    assert [link for link in linked if not (CHECKOUT / "docs" / link).exists()] == []


@pytest.mark.long
@pytest.mark.skipif(not virtual_lab.KERNEL.exists(), reason="no virtual-time kernel (make kernel)")
def test_tutorial__runs(tmp_path: Path) -> None:
    for name, *given in LINES:
        words = [word.replace("results/latest", f"{tmp_path}/latest") for word in given]
        writes = name in ("experiment", "runs") or "MEASURE=1" in words
        words += [f"RESULTS={tmp_path}"] if writes else []
        done = subprocess.run(
            [sys.executable, "-m", "bufferscope", name, *words],
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (given, done.stderr)
        assert ("Take BUF=" if "MEASURE=1" in words else SAYS[name]) in done.stdout, given
    assert (tmp_path / "latest/rep-1/report.html").exists()
    assert (tmp_path / "latest/rep-2/report.html").exists()
