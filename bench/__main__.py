# SPDX-License-Identifier: MIT
"""`make bench`: measures what the documentation claims, prints a table. `python -m bench switch` runs one part.

Exit status 1 when a row misses what it must reach: a claim that no longer holds must not go unseen.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys

from bench import report

PARTS = ("analysis", "collector", "tracer", "switch", "single_flow", "experiment")


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
    if os.geteuid() != 0:
        print("bench: not root: namespaces, packet rings and BPF need it; run it again with sudo", file=sys.stderr)
        return 2
    facts = report.machine()
    before = report.previous()
    rows: list[report.Row] = []
    for part in options.parts or PARTS:
        print(f"bench: {part}", file=sys.stderr)
        rows += importlib.import_module(f"bench.{part}").measure(short=options.short)
    report.show(rows, facts, before)
    if not options.short:
        print(f"written to {report.save(rows, facts)}")
    return 0 if all(row.reaches(row.must) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
