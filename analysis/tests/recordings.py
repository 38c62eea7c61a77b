# SPDX-License-Identifier: MIT
"""Recorded repetitions, and digests of the numbers that the analysis must derive: recorded/KIND/rep-1 holds raw files,
recorded/KIND/derived.json the SHA-256 of its summary and tables, and recorded/KIND/summary.json the summary as text.

Commit 3c73508 recorded them, two long flows each: `real` in real time by iperf3 (3 Mb/s, 100 ms); `virtual`, `ecn` and
`egress-threshold` in virtual time (6 Mb/s, 20 ms); `import` from text files in the published artifact's form, which
`foreign.py` wrote. Paths of the recording machine are replaced by /opt/bufferscope. `whatif` is a what-if of `virtual`.

`python -m analysis.tests.recordings` writes derived.json and summary.json again, with the analysis of this checkout.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from analysis.tests import campaign, damages
from bufferscope.__main__ import main
from runs.names import RECORD

RECORDED = Path(__file__).with_name("recorded")
KINDS = ("real", "virtual", "ecn", "egress-threshold", "import")
WHATIF, WHATIF_OF, WHATIF_WORDS = "whatif", "virtual", ("BUF=6p",)
SUMMARY, DERIVED = "summary.json", "derived.json"


def replay(kind: str, scratch: Path) -> tuple[Path, dict[str, bytes]]:
    """Analyses a copy of a recorded repetition. Returns the copy, its summary and its tables."""
    directory = Path(shutil.copytree(RECORDED / kind / "rep-1", scratch / kind / "rep-1"))
    raw = _files(directory)
    with campaign.undrawn():
        assert main(["replay", str(directory), "--alone"]) == 0
    files = _files(directory)
    assert {name: files[name] for name in raw} == raw, "the analysis changed a raw file"
    return directory, _numbers(files, raw)


def what_if(directory: Path) -> dict[str, bytes]:
    """Replays the arrivals of an analysed repetition through another queue. Returns the new summary and tables."""
    before = _files(directory)
    with campaign.undrawn():
        assert main(["replay", f"RUN={directory}", *WHATIF_WORDS]) == 0
    return _numbers(_files(directory), before)


def _numbers(files: dict[str, bytes], before: dict[str, bytes]) -> dict[str, bytes]:
    """The new summary and tables; figures and pages change with every caption."""
    return {name: data for name, data in files.items() if name not in before and name.endswith((".json", ".parquet"))}


def differences(kind: str, files: dict[str, bytes]) -> list[str]:
    """A line for each derived file that is not as expected, and for each changed key of a summary, with both values."""
    expected = json.loads((RECORDED / kind / DERIVED).read_text())
    lines = [f"{kind}/{name}: is missing" for name in sorted(expected.keys() - files.keys())]
    lines += [f"{kind}/{name}: is new" for name in sorted(files.keys() - expected.keys())]
    for name in sorted(files.keys() & expected.keys()):
        if _digest(files[name]) == expected[name]:
            continue
        lines.append(f"{kind}/{name}: other bytes")
        if Path(name).name == SUMMARY:
            was = _leaves(json.loads((RECORDED / kind / SUMMARY).read_text()))
            now = _leaves(json.loads(files[name]))
            keys = sorted(key for key in was.keys() | now.keys() if was.get(key, ...) != now.get(key, ...))
            lines += [
                f"{kind}/{name}: {key}: was {was.get(key, 'not there')!r}, is {now.get(key, 'not there')!r}"
                for key in keys
            ]
    return lines


def _files(directory: Path) -> dict[str, bytes]:
    """All files except the record of digests: derived.json has the digests of the derived files already."""
    return {name: data or b"" for name, data in damages.files(directory).items() if Path(name).name != RECORD}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _leaves(value: Any, path: str = "") -> dict[str, Any]:
    """Values of a document by their paths: {"utilization.mean": 0.99, "flows.0.cc": "reno"}."""
    if not isinstance(value, dict | list) or not value:
        return {path: value}
    items = value.items() if isinstance(value, dict) else enumerate(value)
    leaves = [_leaves(item, f"{path}.{key}" if path else str(key)) for key, item in items]
    return {key: item for leaf in leaves for key, item in leaf.items()}


def _expect(kind: str, files: dict[str, bytes]) -> None:
    (RECORDED / kind).mkdir(exist_ok=True)
    digests = {name: _digest(data) for name, data in sorted(files.items())}
    (RECORDED / kind / DERIVED).write_text(json.dumps(digests, indent=1) + "\n")
    (summary,) = (data for name, data in files.items() if Path(name).name == SUMMARY)
    (RECORDED / kind / SUMMARY).write_bytes(summary)


def refresh() -> int:
    with tempfile.TemporaryDirectory() as scratch:
        for kind in KINDS:
            directory, files = replay(kind, Path(scratch))
            _expect(kind, files)
            if kind == WHATIF_OF:
                _expect(WHATIF, what_if(directory))
    return 0


if __name__ == "__main__":
    sys.exit(refresh())
