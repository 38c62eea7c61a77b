# SPDX-License-Identifier: MIT
"""Searches as jobs: all points advance together. The runs are the only state: the table can be made from the runs at
any time.
"""

from collections.abc import Callable
from pathlib import Path

import polars
import pytest

from experiments.sweep.plan import JOB_ID, Job
from experiments.sweep.searches import Searches
from experiments.sweep.spec import read
from experiments.sweep.tests.conftest import probe
from lib.errors import SpecError
from runs.run_table import KEY, SCHEMA
from runs.stored_sweep import SEARCHED

SPEC = """\
name: find
reps: 2
base: {clock: virtual, rate: 10gbit, rtt: 1.2ms, mtu: '9000', duration: 100rtt}
grid: {cc: [reno, bbr], flows: ['1', '4']}
search: {criterion: nonempty, least: '0.99', low: 0.02bdp, high: 1.5bdp, width: '0.1', most_reps: '4'}
"""
BDP = 166
NEEDED = {("reno", 1): 160, ("reno", 4): 80, ("bbr", 1): 40, ("bbr", 4): 999}  # packets


def searches(write_spec: Callable[..., Path]) -> Searches:
    return Searches(read(write_spec(text=SPEC), {}, smoke=False), probe)


def rows(jobs: list[Job]) -> polars.DataFrame:
    """The run table of these jobs, if NEEDED were the least buffers."""
    return polars.DataFrame(
        [
            {
                "run": f"find/runs/{job.id}/rep-1",
                "sweep": "find",
                "point": job.spec.point,
                "seed": job.spec.seed,
                "repetition": job.repetition,
                "valid": True,
                "queue_nonempty_fraction": float(
                    job.spec.buffer_packets >= NEEDED[job.spec.long[0].cc, job.spec.flows]
                ),
            }
            for job in jobs
        ],
        schema={name: SCHEMA[name] for name in ("run", *KEY, "valid", "queue_nonempty_fraction")},
    )


def test_searches__go_forward_together_and_end_with_a_table(write_spec: Callable[..., Path], tmp_path: Path) -> None:
    search, done = searches(write_spec), rows([])
    sizes = []
    while (now := search.next(done, set())).more:
        assert {job.id for job in now.jobs} > set(done["run"].str.split("/").list.get(2))
        sizes.append(len(now.jobs))
        done = rows(now.jobs)
    assert sizes[0] == 4 * 2 * 2  # points x ends x repetitions
    assert all(JOB_ID.fullmatch(job.id) for job in now.jobs)
    assert [job.repetition for job in now.jobs] == sorted(job.repetition for job in now.jobs)
    search.write_tables(tmp_path, done, set())
    table = polars.read_parquet(tmp_path / SEARCHED)
    for row in table.iter_rows(named=True):
        needed = NEEDED[row["cc"], row["flows"]]
        assert (row["bdp_packets"], row["criterion"], row["least"]) == (BDP, "nonempty", 0.99)
        if needed > 249:
            assert (row["low_packets"], row["high_packets"], row["runs"]) == (249, None, 4)
            assert row["note"] == "more than 249, the most that was tried"
        else:
            assert row["low_packets"] < needed <= row["high_packets"] <= 1.1 * row["low_packets"] + 1
            assert row["note"] == ""
    assert "  cc=bbr flows=4: more than 249 packets (BDP: 166 packets), 4 runs (more than" in search.lines(tmp_path)[3]

    # A new search with the same runs, as after a stop and a restart
    again = searches(write_spec)
    assert again.next(done, set()) == now
    half = done.sample(fraction=0.5, seed=1)
    assert {job.id for job in again.next(half, set()).jobs} <= {job.id for job in now.jobs}
    again.write_tables(tmp_path, half, set())
    assert "not finished" in "".join(polars.read_parquet(tmp_path / SEARCHED)["note"])


def test_searches__do_without_runs_that_will_not_be_valid(write_spec: Callable[..., Path], tmp_path: Path) -> None:
    search = searches(write_spec)
    jobs = search.next(rows([]), set()).jobs
    lost = {job.id for job in jobs if job.repetition == 2}
    done = rows([job for job in jobs if job.repetition == 1])
    assert len(search.next(done, lost).jobs) > len(jobs)  # the other repetitions decide
    assert search.next(done, set()).jobs == jobs
    search.write_tables(tmp_path, done, lost)
    assert "2 runs are not valid" in polars.read_parquet(tmp_path / SEARCHED)["note"][0]


def test_searches__refuse_a_range_upside_down(write_spec: Callable[..., Path]) -> None:
    file = write_spec(("low: 0.02bdp", "low: 2bdp"), text=SPEC)
    with pytest.raises(SpecError) as failure:
        Searches(read(file, {}, smoke=False), probe)
    assert failure.value.lines()[0].endswith(
        "search.low=2bdp is 332 packets, more than high=1.5bdp, 249 packets; allowed: at most high"
    )
