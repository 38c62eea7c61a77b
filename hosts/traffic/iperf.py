# SPDX-License-Identifier: MIT
"""Runs iperf3 as a child process and reads its results and error messages."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from hosts.traffic import child
from hosts.traffic.child import ProgramMissingError


def find() -> str:
    path = shutil.which("iperf3")
    if path is None:
        raise ProgramMissingError("iperf3 is not installed: apt install iperf3 (3.12 or later)")
    return path


def start(arguments: Sequence[str], output: IO[bytes]) -> subprocess.Popen[bytes]:
    """Starts iperf3 with stdout and stderr to `output`. When the starting thread ends, iperf3 is killed."""
    return child.start([find(), *arguments], subprocess.DEVNULL, output)


def read_result(path: Path) -> tuple[dict[str, Any], str | None]:
    """The result of iperf3 --json, and its error or None. With --json iperf3 3.12 exits with 0 even after an error."""
    text = path.read_text(errors="replace")
    try:
        result = json.loads(text)
    except ValueError:
        return {}, text.strip().splitlines()[-1] if text.strip() else "it wrote nothing"
    if not isinstance(result, dict):
        return {}, "it wrote no JSON object"
    return result, result.get("error")
