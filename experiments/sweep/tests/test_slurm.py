# SPDX-License-Identifier: MIT
"""ENGINE=slurm on a real Slurm of two nodes on this machine (slurm_cluster.py)."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.machine.host import CHECKOUT
from experiments.sweep.tests import slurm_cluster
from experiments.sweep.tests.slurm_cluster import Cluster
from experiments.tests.conftest import wait_for
from runs.names import SUMMARY, SWEEP_RUNS

SPEC = """\
name: many
about: short runs
keep: summary
reps: 4
base: {clock: virtual, rate: 10mbit, rtt: 20ms, warmup: 200ms, duration: 500ms}
grid: {cc: [reno, cubic], buf: [5p, 20p]}
"""
END_S = 900


pytestmark = [
    pytest.mark.software,
    pytest.mark.long,
    pytest.mark.skipif(bool(slurm_cluster.missing()), reason=f"Slurm is not installed: {slurm_cluster.missing()}"),
    pytest.mark.virtual,
]


@pytest.fixture
def two_nodes(tmp_path: Path) -> Iterator[Cluster]:
    with slurm_cluster.cluster(tmp_path / "slurm", most=11) as made:
        yield made


def sweep(cluster: Cluster, tmp_path: Path, *words: str) -> subprocess.Popen[str]:
    spec = tmp_path / "many.yaml"
    spec.write_text(SPEC)
    return subprocess.Popen(
        [sys.executable, "-m", "bufferscope", "sweep", f"SPEC={spec}", f"RESULTS={tmp_path / 'results'}",
         "ENGINE=slurm", *words],
        cwd=CHECKOUT, env=cluster.environment | {"SQUEUE_STATES": "PENDING"},  # a user's setting hides no task
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    said = process.communicate(timeout=END_S)[0]
    return process.returncode, said


def summaries(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "results/many" / SWEEP_RUNS).glob(f"*/rep-*/{SUMMARY}"))


def until(done: int, tmp_path: Path) -> None:
    assert wait_for(lambda: len(summaries(tmp_path)) >= done, END_S)


def test_sweep__stopped_in_any_way_and_losing_a_node_submits_and_stores_each_run_once(
    two_nodes: Cluster, tmp_path: Path
) -> None:
    for word in ("CLOCK=real", "INVENTORY=/nowhere"):
        status, lines = ended(sweep(two_nodes, tmp_path, word))
        assert status == 1
        assert lines.splitlines()[-1].startswith("error: ENGINE=slurm")
    first = sweep(two_nodes, tmp_path)
    until(1, tmp_path)
    first.kill()
    assert ended(first)[1].count("submitted") == 2, "16 runs need two arrays: an array of this cluster has 10 tasks"
    second = sweep(two_nodes, tmp_path)
    until(3, tmp_path)
    second.send_signal(signal.SIGINT)
    status, said = ended(second)
    assert status == 130
    assert "submitted" not in said
    assert "jobs are in Slurm's queue already" in said
    assert "the jobs go on under Slurm; the same command follows them, scancel " in said
    assert "Slurm: " in ended(sweep(two_nodes, tmp_path, "SHOW=1"))[1]
    last = sweep(two_nodes, tmp_path)
    until(5, tmp_path)
    assert wait_for(lambda: bool(two_nodes.jobs_on("two")))
    killed = two_nodes.kill_node("two")
    assert killed
    status, said = ended(last)
    assert status == 0, said
    assert "submitted" not in said
    assert "16 of 16 runs are valid" in said
    assert len(summaries(tmp_path)) == 16
    logs = (tmp_path / "results/many" / SWEEP_RUNS).glob("*/job.log")
    starts = sum(path.read_text().count("planning the hosts' set-up") for path in logs)
    assert 16 <= starts <= 16 + len(killed), "only jobs of the killed node may run twice"
    assert all(json.loads(path.read_text())["valid"] for path in summaries(tmp_path))
