# SPDX-License-Identifier: MIT
"""The command `bench`: measures the documentation's claims and prints a table.

`bufferscope bench switch` runs one part. Exit status 2 if a row misses its `must` bound, or a part fails: a claim that
no longer holds must not go unnoticed. Without root, the parts that need root are skipped visibly.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from types import ModuleType
from typing import Any

from bench import report
from lib.errors import BadValue, RunError, SpecError
from lib.exit_codes import Exit
from lib.words import SWITCH, Key, unknown

PARTS = (
    "analysis",
    "collector",
    "tracer",
    "switch",
    "targets",
    "bmv2",
    "single_flow",
    "experiment",
    "virtual",
    "cross_validation",
)


KEYS = {
    "parts": Key(f"one or several of {', '.join(PARTS)}, separated by commas (default: all)", values=PARTS),
    "short": Key("1: shorter runs, which only test the bench itself; their rows are not stored", "0", SWITCH),
}


def run(given: dict[str, Any], errors: list[BadValue]) -> int:
    names = given["parts"].split(",") if "parts" in given else PARTS
    short = given.get("short") == "1"
    errors += [BadValue("PARTS", name, f"is not a part; {unknown(name, PARTS)}") for name in names if name not in PARTS]
    if errors:
        raise SpecError(errors)
    parts = {part: importlib.import_module(f"bench.{part}") for part in names}
    if os.geteuid() != 0:
        for part in [part for part, module in parts.items() if getattr(module, "NEEDS_ROOT", True)]:
            print(f"bench: {part}: SKIPPED: it needs root (namespaces, packet rings, BPF)", file=sys.stderr)
            del parts[part]
    for part in [part for part, module in parts.items() if why_not(module)]:
        print(f"bench: {part}: SKIPPED: {why_not(parts[part])}", file=sys.stderr)
        del parts[part]
    if not parts:
        return Exit.NOTHING
    facts = report.machine()
    before = report.previous()
    rows: list[report.BenchRow] = []
    failed = False
    for part, module in parts.items():
        print(f"bench: {part}", file=sys.stderr)
        try:
            rows += module.measure(short=short)
        except (RunError, RuntimeError, subprocess.CalledProcessError) as error:  # keep the results of the other parts
            output = (error.stderr or "").strip() if isinstance(error, subprocess.CalledProcessError) else ""
            print(f"bench: {part}: FAILED: {error} {output}", file=sys.stderr)
            failed = True
    report.show(rows, facts, before)
    if not short:
        print(f"written to {report.save(rows, facts)}")
    return Exit.DOUBTFUL if failed or not all(row.reaches(row.must) for row in rows) else Exit.DONE


def why_not(part: ModuleType) -> str:
    """Why a part cannot be measured on this machine; '' if it can."""
    return "" if not hasattr(part, "missing") else str(part.missing())
