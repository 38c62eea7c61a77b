# SPDX-License-Identifier: MIT
"""`make bench`: measures the documentation's claims, prints a table. `python -m bench switch` runs one part.

Exit status 1 if a row misses its bound, or a part fails: a claim that no longer holds must not go unnoticed. Without
root, parts that need it are skipped visibly.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
from types import ModuleType

from bench import report

PARTS = (
    "analysis",
    "collector",
    "tracer",
    "switch",
    "targets",
    "single_flow",
    "experiment",
    "virtual",
    "cross_validation",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of: {' '.join(PARTS)} (default: all)")
    parser.add_argument(
        "--short", action="store_true", help="shorter runs, to try the bench itself; nothing is claimed"
    )
    options = parser.parse_args()
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"no part named {' or '.join(unknown)}; parts are: {', '.join(PARTS)}")
    parts = {part: importlib.import_module(f"bench.{part}") for part in options.parts or PARTS}
    if os.geteuid() != 0:
        for part in [part for part, module in parts.items() if getattr(module, "NEEDS_ROOT", True)]:
            print(f"bench: {part}: SKIPPED: it needs root (namespaces, packet rings, BPF)", file=sys.stderr)
            del parts[part]
    for part in [part for part, module in parts.items() if why_not(module)]:
        print(f"bench: {part}: SKIPPED: {why_not(parts[part])}", file=sys.stderr)
        del parts[part]
    if not parts:
        return 2
    facts = report.machine()
    before = report.previous()
    rows: list[report.BenchRow] = []
    failed = False
    for part, module in parts.items():
        print(f"bench: {part}", file=sys.stderr)
        try:
            rows += module.measure(short=options.short)
        except (RuntimeError, subprocess.CalledProcessError) as error:  # keep the results of the other parts
            output = (error.stderr or "").strip() if isinstance(error, subprocess.CalledProcessError) else ""
            print(f"bench: {part}: FAILED: {error} {output}", file=sys.stderr)
            failed = True
    report.show(rows, facts, before)
    if not options.short:
        print(f"written to {report.save(rows, facts)}")
    return 1 if failed or not all(row.reaches(row.must) for row in rows) else 0


def why_not(part: ModuleType) -> str:
    """Why a part cannot be measured on this machine; '' if it can."""
    return "" if not hasattr(part, "missing") else str(part.missing())


if __name__ == "__main__":
    sys.exit(main())
