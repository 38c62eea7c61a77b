# SPDX-License-Identifier: MIT
"""The command `bench`: measures the documentation's claims and prints a table.

`bufferscope bench switch` runs one part. Exit status 2 if a row misses its `must` bound, or a part fails: a claim that
no longer holds must not go unnoticed. A part that needs root, or something that this machine lacks, is skipped visibly.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys

from bench import page, report
from bench.part import Part
from experiments.machine.host import CHECKOUT
from lib.errors import RunError
from lib.exit_codes import Exit
from lib.keys import Keys, Wrong, field, flag
from lib.words import unknown

PARTS = (
    "analysis",
    "collector",
    "tracer",
    "core",
    "switch",
    "targets",
    "bmv2",
    "single_flow",
    "experiment",
    "virtual",
    "cross_validation",
)


def _parts(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if wrong := [name for name in names if name not in PARTS]:
        raise ValueError(f"has {wrong[0]}, which is not a part; {unknown(wrong[0], PARTS)}")
    return names


class Asked(Keys):
    parts: tuple[str, ...] | None = field(
        f"one or several of {', '.join(PARTS)}, separated by commas (default: all)", _parts, values=PARTS
    )
    short: bool = flag("1: shorter runs, which only test the bench itself")
    publish: bool = flag(f"1: all parts, then write {page.PAGE} and {page.STORED}")

    def check(self, wrong: Wrong) -> None:
        if self.publish and (self.short or set(self.parts or PARTS) != set(PARTS)):
            wrong("publish", "publishes a whole bench; leave out PARTS and SHORT")
        elif self.publish and report.edited():
            wrong("publish", "needs a checkout without changes, because the page names the commit")


def run(asked: Asked) -> int:
    names, short, publish = asked.parts or PARTS, asked.short, asked.publish
    parts: dict[str, Part] = {name: importlib.import_module(f"bench.{name}").PART for name in names}
    skipped = {name: why for name, part in parts.items() if (why := why_not(part))}
    for name, why in skipped.items():
        print(f"bench: {name}: SKIPPED: {why}", file=sys.stderr)
    chosen = {name: part for name, part in parts.items() if name not in skipped}
    if not chosen:
        return Exit.NOTHING
    build(sorted({goal for part in chosen.values() for goal in part.goals}))
    facts = report.machine()
    before = report.previous()
    rows: list[report.BenchRow] = []
    failed = False
    for name, part in chosen.items():
        print(f"bench: {name}", file=sys.stderr)
        try:
            rows += part.measure(short)
        except (RunError, RuntimeError, subprocess.CalledProcessError) as error:  # keep the results of the other parts
            output = (error.stderr or "").strip() if isinstance(error, subprocess.CalledProcessError) else ""
            print(f"bench: {name}: FAILED: {error} {output}", file=sys.stderr)
            skipped[name] = "it failed"
            failed = True
    report.show(rows, facts, before)
    print(f"written to {report.save(rows, facts, skipped, short)}")
    if publish and not failed:
        page.publish(rows, facts, skipped)
    return Exit.DOUBTFUL if failed or not all(row.reaches(row.must) for row in rows) else Exit.DONE


def why_not(part: Part) -> str:
    """Why a part cannot be measured on this machine; '' if it can."""
    if part.needs_root and os.geteuid() != 0:
        return "it needs root (namespaces, packet rings, BPF)"
    return part.absent()


def build(goals: list[str]) -> None:
    """Makes what the parts run, as the user would. Raises RunError."""
    if not goals:
        return
    environment = {name: value for name, value in os.environ.items() if name not in ("CC", "MAKEFLAGS", "MFLAGS")}
    command = ["make", "--no-print-directory", *goals]
    if subprocess.run(command, cwd=CHECKOUT, env=environment, stdout=sys.stderr, check=False).returncode:
        raise RunError(f"{' '.join(command)} failed: see above; or choose PARTS that need less (bench --help)")
