# SPDX-License-Identifier: MIT
"""plan.json of a sweep: its spec and its jobs (experiments/sweep/plan.py). The file has a digest of itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lib import regular
from runs import record, results
from runs.names import PLAN

REMEDY = "run the sweep again to write it anew"


def write(directory: Path, content: Mapping[str, Any]) -> None:
    """Replaces the plan. Raises OSError."""
    results.write_json(directory / PLAN, record.signed(content))


def read(directory: Path) -> dict[str, Any]:
    """The plan; `jobs` are mappings by name. Raises ValueError if the file is damaged, OSError."""
    try:
        content = json.loads(regular.read_text(directory / PLAN))
    except RecursionError:
        raise ValueError("is nested too deep") from None
    record.check_signed(content)
    jobs = content.get("jobs")
    if not isinstance(jobs, dict) or not all(isinstance(job, dict) for job in jobs.values()):
        raise ValueError("is not a plan of a sweep")
    return {key: value for key, value in content.items() if key != "digest"}


def misplaced(directory: Path, plan: Mapping[str, Any]) -> str | None:
    """One line if the plan is of a sweep with another name than the directory's."""
    sweep = plan.get("sweep")
    name = sweep.get("name") if isinstance(sweep, dict) else None
    if not isinstance(name, str) or name in (directory.absolute().name, directory.resolve().name):
        return None
    return f"is the plan of sweep {name[:100]!a}, not of {directory.absolute().name}"
