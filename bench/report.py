# SPDX-License-Identifier: MIT
"""Rows of the bench, as a table and as JSON: the measured value, its bounds, its peer.

Results are written to results/bench/<UTC>.json, those of a short bench to short.json. A row is compared with the
newest earlier result of the same name.
Machines are shared and noisy, so both sides of a ratio are measured in the same bench, in turn if there are several
runs, and the row's value is the median of the ratios.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

RESULTS = Path("results/bench")
SHORT = "short.json"
FIGURE = RESULTS / "cross_validation.svg"  # drawn by the part of this name


@dataclass(frozen=True)
class BenchRow:
    """One measured number. `must` and `aim` are bounds in the direction of `better` ("higher" or "lower"). Only a
    missed `must` fails the bench.
    """

    name: str
    value: float
    unit: str
    must: float | None = None
    aim: float | None = None
    better: str = "higher"
    peer: str = ""
    note: str = ""
    samples: list[float] = field(default_factory=list)

    def reaches(self, bound: float | None) -> bool:
        if bound is None:
            return True
        return self.value >= bound if self.better == "higher" else self.value <= bound


def machine() -> dict[str, str | int | float]:
    """The machine of the measurement."""
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        "unknown",
    )
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return {
        "cpu": model,
        "cores": os.cpu_count() or 0,
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "commit": commit.stdout.strip(),
        "load_at_start": os.getloadavg()[0],
    }


def previous() -> dict[str, float]:
    """Row name -> its value in the newest earlier bench that has this row."""
    values: dict[str, float] = {}
    for path in sorted(RESULTS.glob("*Z.json")):
        values.update({row["name"]: row["value"] for row in json.loads(path.read_text())["rows"]})
    return values


def edited() -> bool:
    """Whether the checkout has changes that its commit lacks."""
    changes = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=no"], capture_output=True, text=True, check=False
    )
    return changes.returncode != 0 or bool(changes.stdout.strip())


def save(rows: Iterable[BenchRow], machine_facts: dict, skipped: Mapping[str, str], of_short: bool) -> Path:
    """`skipped`: part -> why it was not measured. The file of a short bench is replaced by the next one."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / (SHORT if of_short else f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json")
    stored = {"machine": machine_facts, "skipped": dict(skipped), "rows": [asdict(row) for row in rows]}
    path.write_text(json.dumps(stored, indent=1) + "\n")
    return path


def show(rows: list[BenchRow], machine_facts: dict, before: dict[str, float]) -> None:
    console = Console(width=max(Console().width, 150))
    console.print(" · ".join(f"{name} {value}" for name, value in machine_facts.items()), soft_wrap=True)
    table = Table("row", "measured", "must", "aim", "before", "verdict", "peer", "note")
    for row in rows:
        sign = "≥" if row.better == "higher" else "≤"
        table.add_row(
            row.name,
            f"{short(row.value)} {row.unit}",
            f"{sign} {short(row.must)}" if row.must is not None else "",
            f"{sign} {short(row.aim)}" if row.aim is not None else "",
            short(before[row.name]) if row.name in before else "",
            "" if row.must is None else "reached" if row.reaches(row.must) else "[bold red]MISSED[/]",
            row.peer,
            row.note,
        )
    console.print(table)


def short(value: float | None) -> str:
    return "" if value is None else f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}"
