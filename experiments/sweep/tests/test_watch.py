# SPDX-License-Identifier: MIT
"""The files in a job's directory decide whether the job has finished; the clock of a lab does not matter."""

import json
import os
from pathlib import Path

from experiments.run import runner
from experiments.sweep import plan
from experiments.sweep.progress import SweepProgress
from experiments.sweep.run import Watch
from experiments.sweep.spec import Sweep
from experiments.sweep.tests.conftest import VALID, probe
from runs import results
from runs.job_state import make_room
from runs.names import ABORTED, REPETITION, SUMMARY, SWEEP_RUNS

BEHIND_S = 1_000_000_000  # mtime of the files, by the clock of a lab without NTP


def ended(own: Path, file: str, content: object, at_s: float) -> None:
    (own / REPETITION).mkdir(parents=True)
    (own / REPETITION / file).write_text(json.dumps(content))
    os.utime(own / REPETITION / file, (at_s, at_s))


def test_job__of_a_lab_whose_clock_is_behind_counts_as_finished(small: Sweep, tmp_path: Path) -> None:
    first, second, third, *_ = jobs = plan.jobs(small, probe)[:4]
    owns = {job.id: tmp_path / SWEEP_RUNS / job.id for job in jobs}
    ended(owns[first.id], SUMMARY, VALID | {"valid": False, "reasons": ["late"]}, BEHIND_S)
    progress = SweepProgress("x", 1)
    watch = Watch(jobs, tmp_path, tmp_path, progress, runner.Ending(), lambda job: 1.0)
    watch()
    assert (progress.done, len(watch.left)) == (0, 4)  # files of an earlier attempt do not end a new attempt

    make_room(owns[first.id])
    ended(owns[first.id], SUMMARY, VALID, BEHIND_S)
    ended(owns[second.id], ABORTED, "no room", BEHIND_S)
    with results.running(Path(owns[second.id])):
        watch()
        assert second.id in watch.left
    (owns[third.id] / REPETITION).mkdir(parents=True)
    watch()
    assert (progress.done, progress.not_valid) == (2, 1)
    assert set(watch.left) == {third.id, jobs[3].id}
