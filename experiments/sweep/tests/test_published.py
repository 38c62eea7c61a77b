# SPDX-License-Identifier: MIT
"""A published run does its job, whatever the name of the run, until the job has a run of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars

from experiments.sweep import plan
from experiments.sweep.published import NONE, Published
from experiments.sweep.spec import read
from experiments.sweep.tests.conftest import VALID, probe
from runs.job_state import State
from runs.run_table import SCHEMA

SPEC = """\
name: find
reps: 2
base: {clock: virtual, rate: 10gbit, rtt: 1.2ms, mtu: '9000', duration: 100rtt, buf: 1bdp}
grid: {flows: ['1', '4']}
"""


def test_published_run__does_its_job_until_the_job_has_a_run_of_its_own(
    write_spec: Callable[..., Path], tmp_path: Path
) -> None:
    jobs = plan.jobs(read(write_spec(text=SPEC), {}, smoke=False), probe)
    first = jobs[0]
    row = {
        "run": "find/runs/of-another-name-r1/rep-1", "sweep": "find", "point": first.spec.point,
        "seed": first.spec.seed, "repetition": first.repetition, "valid": True,
    }  # fmt: skip
    published = Published(polars.DataFrame([row], schema=SCHEMA))

    def done(by: Published, sweep: str = "find") -> list[plan.Job]:
        return [job for job in jobs if by.state(tmp_path / sweep / "runs" / job.id, job).state is State.VALID]

    assert done(published) == [first]
    assert done(published, "other") == done(NONE) == []
    assert done(Published(polars.DataFrame([row | {"valid": False}], schema=SCHEMA))) == []

    own = tmp_path / "find/runs" / first.id / "rep-1"
    own.mkdir(parents=True)
    (own / "summary.json").write_text(json.dumps(VALID | {"valid": False}))
    assert done(published) == []
    known = polars.DataFrame([row | {"run": "find/runs/mine/rep-1", "valid": False}], schema=SCHEMA)
    assert published.beside(known).equals(known)
    assert published.beside(known.clear())["run"].to_list() == [row["run"]]
