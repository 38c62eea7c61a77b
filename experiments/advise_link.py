# SPDX-License-Identifier: MIT
"""The last step of advise MEASURE=1 if the search ran on a scaled link: runs on the link itself. The first run has the
buffer that the search found, scaled to the link; the next runs have the rules' larger buffers, until one is enough. An
experiment above a certain cost asks for consent (consent.py); all these runs together stay below this cost.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars

from analysis.advise.brief import CHECK_WORDS, Measurement, words
from analysis.amounts import duration, si, whole
from experiments import consent, cost, disk, machine_speed
from experiments.host import Host
from experiments.sweep import run as sweep_run
from experiments.sweep.spec import Sweep
from lib import units
from lib.errors import Interrupted, RunError, SpecError

if TYPE_CHECKING:
    from analysis.advise.link import Link

MOST_RUNS = 3  # the carried-over buffer, the rule's, the BDP


class Limits(NamedTuple):
    """The number of runs of the link within the cost limit. `text` announces them; for 0 runs it gives the reason."""

    runs: int
    text: str

    @classmethod
    def of(cls, link: Link, probe: Callable[[str], Host]) -> Limits:
        from experiments.resolve import resolve

        given = {key: value for key, value in base(link).items() if key != "name"}
        try:
            spec = resolve({**given, "buf": "1bdp"}, probe("virtual"))
        except SpecError as failure:
            return cls(0, f"no run of your link, which cannot be run: {failure.errors[0]}")
        run_s, size = cost.repetition_s(spec), disk.estimate_bytes(spec)
        takes = f"{duration(machine_speed.slowness(1) * run_s)} and {si(float(size), 'B')} of disk"
        runs = min(int(consent.ASK_S / run_s), MOST_RUNS)
        if not runs or size > consent.ASK_BYTES:
            return cls(0, f"no run of your link itself, which would take about {takes}")
        return cls(runs, f"up to {runs} runs of your link itself, about {takes} each")


def base(link: Link) -> dict[str, str]:
    """The parameters of an experiment on the link, without a buffer."""
    given = dict(word.split("=", 1) for word in f"{words(link)} {CHECK_WORDS}".split())
    return {"clock": "virtual", **{key.lower(): value for key, value in given.items()}}


def try_on_link(
    link: Link, found: Measurement, by_rules: int, limits: Limits, results: Path, probe: Callable[[str], Host]
) -> Measurement:
    """The measurement with the runs of the link. Raises Interrupted."""
    assert found.packets is not None
    lines = list(found.lines)
    if not limits.runs:
        return found._replace(lines=[*lines, f"There is {limits.text}: the answer is not measured."])
    larger = sorted({by_rules, whole(link.bdp)} - {found.packets})
    packets = found.packets
    for packets in [found.packets, *(each for each in larger if each > found.packets)][: limits.runs]:
        try:
            used = _utilization(link, packets, results, probe)
        except (RunError, SpecError) as problem:
            text = problem.lines[0] if isinstance(problem, RunError) else str(problem.errors[0])
            return found._replace(lines=[*lines, f"Your link itself could not be run: {text}"])
        enough = used >= link.utilization
        lines.append(
            f"A run of your link with {packets}p kept {100 * used:.4g} % in the worst 1 % of 10 RTTs "
            f"({CHECK_WORDS}, one seed): {'enough' if enough else 'not enough'}."
        )
        if enough:
            return Measurement(lines, packets, False)
    lines.append("No run of your link was enough: take more than below, or ask for a lower UTIL.")
    return Measurement(lines, packets, True)


def _utilization(link: Link, packets: int, results: Path, probe: Callable[[str], Host]) -> float:
    """The 1st percentile of utilization over 10 RTTs in a run of the link. Raises SpecError, RunError, Interrupted."""
    rate, rtt = units.show(link.rate_bps, "rate"), units.show(link.rtt_ns, "time")
    name = "-".join(["advise-link", link.cc, f"n{link.flows}", rate, rtt]).replace(".", "_")
    sweep = Sweep(
        name=name, about="a run of the link itself (advise MEASURE=1)", keep="summary", reps=1, seed=1,
        base=dict(base(link)), points=({"buf": f"{packets}p"},), search=None, file="MEASURE=1",
    )  # fmt: skip
    status = sweep_run.run(sweep, probe, sweep_run.Options(results), say_page=False)
    if status >= 128:
        raise Interrupted(status - 128)
    used = _stored(results, name, packets)
    if used is None:
        raise RunError(f"{results / name}: the run with {packets} packets is not valid")
    return used


def _stored(results: Path, name: str, packets: int) -> float | None:
    from runs import run_table

    is_asked = (polars.col("sweep") == name) & (polars.col("buffer_packets") == packets) & polars.col("valid")
    rows: list[Any] = run_table.read(results).filter(is_asked)["utilization_p01"].to_list()
    return rows[0] if rows else None
