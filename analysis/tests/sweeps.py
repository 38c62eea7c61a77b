# SPDX-License-Identifier: MIT
"""Sweeps for tests: directories as `make sweep` leaves them. Every run is a copy of one analysed repetition with
changed parameters and numbers. The numbers are arbitrary: tests check only that pages show the stored numbers.
"""

from __future__ import annotations

import copy
import itertools
import json
from pathlib import Path
from typing import Any

from runs import plan_file
from runs.plan_file import Plan

ENVIRONMENT = {
    "git": {"commit": "c0ffee" + 34 * "0", "dirty": False},
    "program": {"name": "bufferscope", "digest": "feed" + 60 * "0"},
    "cpu": {"model": "A <b>processor</b>", "count": 2},
    "kernel": {"release": "6.12.0-test"},
    "phases_s": {"traffic": 1.5},
}


def write(
    directory: Path, summary: dict[str, Any], grid: dict[str, list[Any]], reps: int = 1, **sweep: Any
) -> dict[str, Path]:
    """Writes a sweep over `grid` (cc, flows, buf in packets, ...); all its runs are valid. Returns {job id: directory};
    a job id names the parameters.
    """
    jobs, places = {}, {}
    for number in range(1, reps + 1):
        for values in itertools.product(*grid.values()):
            point = dict(zip(grid, values, strict=True))
            name = "-".join(f"{key[0]}{value}" for key, value in point.items()) + f"-r{number}"
            altered = changed(summary, point, number)
            places[name] = directory / "runs" / name
            put(places[name] / "rep-1", altered)
            jobs[name] = {"point": {k: str(v) for k, v in point.items()}, "repetition": number, "spec": altered["spec"]}
    said = {"name": directory.name, "about": "A sweep <i>for</i> tests.", "keep": "summary", "reps": reps, "seed": 1,
            "base": {"clock": "virtual", "rate": "50mbit"}, "points": [], "search": None} | sweep  # fmt: skip
    plan_file.write(directory, Plan.model_validate({"sweep": said, "jobs": jobs}))
    return places


def changed(summary: dict[str, Any], point: dict[str, Any], number: int) -> dict[str, Any]:
    """A copy of a summary with other parameters. Its numbers follow from the parameters by simple formulas."""
    altered = copy.deepcopy(summary)
    flows, buffer = int(point.get("flows", 1)), int(point.get("buf", 40))
    altered["spec"] |= {"groups": [{"cc": point.get("cc", "reno"), "flows": flows}], "buffer_packets": buffer}
    altered["buffer_packets"] = buffer
    altered["spec"] |= {key: value for key, value in point.items() if key in ("mode", "rate_bps")}
    used = 1 - 1 / (buffer * flows**0.5 + number)
    altered["utilization"] |= {"mean": used, "p01": used - 0.01}
    altered["queue_nonempty_fraction"] = used
    altered["queue_depth_packets"] |= {"p01": 1, "p50": buffer // 2 + number, "p99": buffer, "max": buffer}
    altered["queue_delay_ns"] |= {"p50": 200_000 * (buffer // 2 + number), "p99": 200_000 * buffer}
    altered["almost_fairness"]["delta"] = flows**0.5 / number
    return altered


def put(repetition: Path, summary: dict[str, Any]) -> None:
    """An analysed repetition whose summary was kept; its report is a page of one line."""
    repetition.mkdir(parents=True)
    (repetition / "summary.json").write_text(json.dumps(summary))
    (repetition / "environment.json").write_text(json.dumps(ENVIRONMENT))
    (repetition / "report.html").write_text("<!DOCTYPE html><title>a run</title>")
    (repetition / "THINNED").write_text("summary\n")
