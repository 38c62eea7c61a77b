# SPDX-License-Identifier: MIT
"""ENGINE=slurm on a real Slurm of two nodes on this machine (slurm_cluster.py)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.host import CHECKOUT
from experiments.lab import virtual as virtual_lab
from experiments.sweep.tests import slurm_cluster
from experiments.sweep.tests.slurm_cluster import Cluster
from runs.names import SUMMARY, SWEEP_RUNS

SPEC = """\
name: many
about: short runs
keep: summary
reps: {reps}
base: {{clock: virtual, rate: 10mbit, rtt: 20ms, warmup: 200ms, duration: 500ms}}
grid: {{cc: [reno, cubic], buf: [5p, 20p]}}
"""
END_S = 900


pytestmark = [
    pytest.mark.software,
    pytest.mark.long,
    pytest.mark.skipif(bool(slurm_cluster.missing()), reason=f"Slurm is not installed: {slurm_cluster.missing()}"),
    pytest.mark.skipif(not virtual_lab.KERNEL.exists(), reason="build/virtual/linux missing: make kernel"),
]


@pytest.fixture
def two_nodes(tmp_path: Path) -> Iterator[Cluster]:
    with slurm_cluster.cluster(tmp_path / "slurm", most=31) as made:
        yield made


def sweep(cluster: Cluster, tmp_path: Path, reps: int, *words: str) -> subprocess.Popen[str]:
    spec = tmp_path / "many.yaml"
    spec.write_text(SPEC.format(reps=reps))
    return subprocess.Popen(
        [sys.executable, "-m", "bufferscope", "sweep", f"SPEC={spec}", f"RESULTS={tmp_path / 'results'}",
         "ENGINE=slurm", *words],
        cwd=CHECKOUT, env=cluster.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def summaries(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "results/many" / SWEEP_RUNS).glob(f"*/rep-*/{SUMMARY}"))


def until(done: int, tmp_path: Path) -> None:
    deadline = time.monotonic() + END_S
    while len(summaries(tmp_path)) < done:
        assert time.monotonic() < deadline
        time.sleep(0.5)


def test_sweep__stopped_in_any_way_is_followed_and_never_submitted_twice(two_nodes: Cluster, tmp_path: Path) -> None:
    first = sweep(two_nodes, tmp_path, 2)
    until(1, tmp_path)
    first.kill()
    first.communicate()
    second = sweep(two_nodes, tmp_path, 2)
    until(3, tmp_path)
    second.send_signal(signal.SIGINT)
    said = second.communicate(timeout=END_S)[0]
    assert second.returncode == 130
    assert "submitted" not in said
    assert "jobs are in Slurm's queue already" in said
    assert "the jobs go on under Slurm; the same command follows them, scancel " in said
    shown = sweep(two_nodes, tmp_path, 2, "SHOW=1").communicate(timeout=END_S)[0]
    assert "Slurm: " in shown
    last = sweep(two_nodes, tmp_path, 2)
    said = last.communicate(timeout=END_S)[0]
    assert last.returncode == 0, said
    assert "submitted" not in said
    assert "8 of 8 runs are valid" in said
    assert len(summaries(tmp_path)) == 8


def test_forty_runs__while_a_node_dies_are_all_valid_and_stored_once(two_nodes: Cluster, tmp_path: Path) -> None:
    process = sweep(two_nodes, tmp_path, 10)
    until(20, tmp_path)
    deadline = time.monotonic() + 60
    while not two_nodes.jobs_on("two"):
        assert time.monotonic() < deadline
    killed = two_nodes.kill_node("two")
    assert killed
    said = process.communicate(timeout=END_S)[0]
    assert process.returncode == 0, said
    assert "40 of 40 runs are valid" in said
    assert said.count("submitted") == 2, "40 runs need two arrays: an array of this cluster has 30 tasks at most"
    assert len(summaries(tmp_path)) == 40
    logs = (tmp_path / "results/many" / SWEEP_RUNS).glob("*/job.log")
    starts = sum(path.read_text().count("planning the hosts' set-up") for path in logs)
    assert 40 <= starts <= 40 + len(killed), "only jobs of the killed node may run twice"
    assert all(json.loads(path.read_text())["valid"] for path in summaries(tmp_path))


def test_refusals__are_one_line(two_nodes: Cluster, tmp_path: Path) -> None:
    for words, said in (
        (
            ("CLOCK=real",),
            "ENGINE=slurm: in real time runs would disturb the nodes' other jobs; allowed: CLOCK=virtual",
        ),
        (("INVENTORY=/nowhere",), "ENGINE=slurm has machines of its own; leave INVENTORY out"),
    ):
        process = sweep(two_nodes, tmp_path, 1, *words)
        lines = process.communicate(timeout=END_S)[0].splitlines()
        assert process.returncode == 1
        assert lines[-1] == f"error: {said}"
