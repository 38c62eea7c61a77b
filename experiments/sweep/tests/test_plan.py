# SPDX-License-Identifier: MIT
"""Plans: every point is checked before anything runs, and names are stable. Repetition 1 of every point precedes any
repetition 2, and the order within a repetition is random.
"""

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.machine.host import CHECKOUT, Host
from experiments.sweep import plan
from experiments.sweep.spec import Sweep, read
from experiments.sweep.tests.conftest import probe
from lib.errors import RunError, SpecError
from model.experiment import Experiment
from virtual.kernel.config import OF_LINUX, OURS

SHIPPED = sorted((CHECKOUT / "experiments/specs").glob("*/*.yaml"))


def every_linux(clock: str) -> Host:
    return Host((*OF_LINUX, *OURS), netem=True, clock="virtual")


def test_order__is_random_with_all_first_repetitions_first(small: Sweep) -> None:
    jobs = plan.jobs(small, probe)
    assert [job.repetition for job in jobs] == [1] * 6 + [2] * 6
    first, second = ([job.point for job in jobs if job.repetition == number] for number in (1, 2))
    assert sorted(map(str, first)) == sorted(map(str, second)) == sorted(map(str, small.points))
    assert first != second
    assert first != list(small.points)
    assert jobs == plan.jobs(small, probe)
    assert [job.point for job in plan.jobs(replace(small, seed=8), probe)][:6] != first


def test_seed__is_of_the_repetition_and_common_to_all_points(small: Sweep) -> None:
    seeds = {(job.repetition, job.spec.seed) for job in plan.jobs(small, probe)}
    assert len(seeds) == 2
    assert len({seed for _, seed in seeds}) == 2


def test_names__stay_and_differ_where_runs_do(small: Sweep) -> None:
    names = {job.id for job in plan.jobs(small, probe)}
    assert len(names) == 12
    assert all(plan.JOB_ID.fullmatch(name) for name in names)
    more = replace(small, reps=5, points=(*small.points, {"cc": "reno", "flows": "9"}))
    assert names < {job.id for job in plan.jobs(more, probe)}  # runs that are done still count
    assert not names & {job.id for job in plan.jobs(replace(small, seed=8), probe)}
    mix = replace(small, points=({"cc": "cubic:3,bbr:2"},))
    assert plan.jobs(mix, probe)[0].id.startswith("cubic-bbr-n5-b20-")


def test_point__given_in_two_ways_is_run_once(small: Sweep) -> None:
    twice = replace(small, points=({"cc": "reno", "buf": "20p"}, {"cc": "reno", "buf": "20pkt"}))
    assert len(plan.jobs(twice, probe)) == 2  # two repetitions of one point


def test_points__are_checked_and_each_error_is_said_once(write_spec: Callable[..., Path]) -> None:
    file = write_spec(("[reno, cubic, bbr]", "[reno, vegas]"), ("rtt: 4ms", "rtt: '4'"))
    with pytest.raises(SpecError) as failure:
        plan.jobs(read(file, {}, smoke=False), probe)
    lines = failure.value.lines()
    assert len(lines) == 2
    assert lines[0].startswith(f"{file}: RTT=4 is a number without a unit")
    assert f"{file}, cc=vegas flows=1: CC=vegas is not a congestion control" in lines[1]


def test_optional_algorithms__are_left_out_where_the_kernel_lacks_them(write_spec: Callable[..., Path]) -> None:
    file = write_spec(
        ("[reno, cubic, bbr]", "[reno, bbr2, 'bbr2:1,cubic:3']"), ("smoke:", "optional_cc: [bbr2]\nsmoke:")
    )
    whole = read(file, {}, smoke=False)
    sweep = plan.offered(whole, probe)
    assert {point["cc"] for point in sweep.points} == {"reno"}
    assert sweep.note == "no kernel at hand has bbr2: 4 points left out"
    assert plan.jobs(sweep, probe)

    def has_it(clock: str) -> Host:
        return Host(("bbr2", "cubic", "reno"), netem=True, clock="virtual")

    assert plan.offered(whole, has_it) == whole
    nothing_else = replace(whole, points=({"cc": "bbr2"},))
    with pytest.raises(SpecError, match="CC=bbr2 is not a congestion control"):
        plan.jobs(plan.offered(nothing_else, probe), probe)
    bad = write_spec(("smoke:", "optional_cc: bbr2\nsmoke:"))
    with pytest.raises(SpecError, match="optional_cc=bbr2 is no list of congestion controls"):
        read(bad, {}, smoke=False)


def test_shipped_sweeps__can_be_planned() -> None:
    for file, smoke in itertools.product(SHIPPED, (False, True)):
        sweep = plan.offered(read(file, {}, smoke), every_linux)
        assert len(plan.check(sweep, sweep.points, every_linux)) == len(sweep.points), file


def test_shipped_sweeps__in_real_time_are_the_same_in_packets_and_rtts() -> None:
    def planned(file: Path, words: dict[str, object], smoke: bool, controls: tuple[str, ...]) -> dict[str, Experiment]:
        sweep = plan.offered(read(file, words, smoke), lambda clock: Host(controls, True, clock))
        found = plan.check(sweep, sweep.points, lambda clock: Host(controls, True, clock))
        return {plan.describe(point): spec for point, spec in found}

    def in_packets(spec: Experiment) -> tuple[object, ...]:
        times = (spec.duration_ns, spec.warmup_ns, spec.start_spread_ns or 0)
        return spec.buffer_packets, spec.bdp_packets, spec.generator, *(time / spec.rtt_ns for time in times)

    for file, smoke in itertools.product(SHIPPED, (False, True)):
        if "\nreal:" not in file.read_text():
            continue
        real = planned(file, {"clock": "real"}, smoke, ("bbr", "cubic", "reno"))  # congestion controls of any kernel
        assert real, file
        virtual = planned(file, {}, smoke, (*OF_LINUX, *OURS))
        for point, spec in real.items():
            assert spec.clock == "real"
            assert spec.rate_bps in (100_000_000, virtual[point].rate_bps)
            assert in_packets(spec) == in_packets(virtual[point]), (file, point)


def test_file__gives_jobs_back_as_they_were(small: Sweep, tmp_path: Path) -> None:
    jobs = plan.jobs(small, probe)
    plan.write(tmp_path, small, jobs)
    assert [plan.read_job(tmp_path, job.id) for job in jobs] == [(job, "summary") for job in jobs]
    for name in ("x", "../x", "a b", "$(x)"):
        with pytest.raises(RunError):
            plan.read_job(tmp_path, name)


def test_file__has_a_text_of_the_users_once(write_spec: Callable[..., Path], tmp_path: Path) -> None:
    sweep = read(write_spec(("rtt: 4ms", "rtt: 4ms, p4: template")), {}, smoke=False)
    jobs = plan.jobs(sweep, probe)
    plan.write(tmp_path, sweep, jobs)
    program = jobs[0].spec.p4
    assert program is not None
    assert program.compiled.text is not None
    assert (tmp_path / "plan.json").stat().st_size < 2 * len(program.compiled.text)
    assert [plan.read_job(tmp_path, job.id)[0] for job in jobs] == jobs


def test_headlines__get_more_repetitions_and_change_nothing_else(write_spec: Callable[..., Path]) -> None:
    plain = read(write_spec(), {}, smoke=False)
    headlines = "headlines: {reps: 3, points: [{cc: reno, flows: '4'}]}"
    more = read(write_spec(("smoke:", f"{headlines}\nsmoke:")), {}, smoke=False)
    before, after = plan.jobs(plain, probe), plan.jobs(more, probe)
    assert [job.id for job in after[: len(before)]] == [job.id for job in before]
    assert [(job.repetition, job.point["cc"], job.point["flows"]) for job in after[len(before) :]] == [(3, "reno", "4")]
    assert [job.id for job in plan.jobs(more.limited(1), probe)] == [
        job.id for job in plan.jobs(plain.limited(1), probe)
    ]
    assert more.limited(2) != more
    assert read(write_spec(), {}, smoke=True).headlines.points == ()
