# SPDX-License-Identifier: MIT
"""The pipeline of one repetition: from raw files to the input of figures, summary and report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.join.in_flight import InFlight
from analysis.join.join import Segments, join
from analysis.judge import ledger as ledger_module
from analysis.judge.validity import reasons_against
from analysis.measure import metrics, open_loop, program_results
from analysis.measure.fidelity import fidelity
from analysis.measure.loss import LossEvent, longest_rtt_ns, loss_events
from analysis.read.columns import Columns
from analysis.read.load import Run, load
from runs.record import Damage


@dataclass
class Analysis:
    """The results of one repetition."""

    run: Run
    port: int | None  # of the bottleneck queue
    queue: Columns  # postcards of the bottleneck queue, by arrival
    segments: Segments
    in_flight: InFlight
    window: metrics.Window
    shared: metrics.Window  # the part of `window` in which all long flows were there: for fairness
    link: metrics.LinkUsage
    windows: metrics.WindowSeries
    good: metrics.Goodput
    utilization: dict[str, float | None]
    events: list[LossEvent]
    rtt_max_ns: int
    ledger: dict[str, int | None]
    fidelity: dict[str, Any]
    reasons: list[str]


def analyse(
    directory: Path,
    when_loaded: Callable[[Run], object] = lambda run: None,
    damage: Sequence[Damage] = (),
    when_joined: Callable[[Run, Columns, Segments, InFlight], object] = lambda run, queue, segments, in_flight: None,
) -> Analysis:
    """Analyses one repetition. `when_loaded` is called with the loaded run before the analysis, `when_joined` with the
    join before the measures; `damage` is the result of analysis.load.damage_of. Raises InputError like
    analysis.load.load.
    """
    run = load(directory, damage)
    when_loaded(run)
    spec, rtt_ns = run.experiment, run.experiment.rtt_ns
    port, queue = metrics.bottleneck(run)
    segments, in_flight = join(run, queue)
    when_joined(run, queue, segments, in_flight)

    window = metrics.measurement_window(run, queue)
    link = metrics.LinkUsage(queue, run.rate, directory)
    utilization = metrics.utilization(link, window, rtt_ns)

    def judged() -> tuple[ledger_module.Entries, dict[str, Any], list[str]]:
        entries = ledger_module.ledger(run)
        if run.experiment.datagrams:
            entries |= open_loop.datagrams(run, queue)
        entries |= program_results.packets(run, queue)
        facts = fidelity(run, queue, port)
        return entries, facts, reasons_against(run, queue, port, window, entries, facts, utilization)

    with ThreadPoolExecutor(1) as second:  # NumPy releases the interpreter's lock
        judgement = second.submit(judged)
        good = metrics.goodput(run, queue, segments, window)
        windows = metrics.window_series(run, in_flight)
        rtt_max_ns = longest_rtt_ns(rtt_ns, spec.buffer_packets, spec.wire_bytes, metrics.mean_rate_bps(run, window))
        events = loss_events(queue, link, windows, window, rtt_ns, rtt_max_ns)
        entries, facts, reasons = judgement.result()
    shared = metrics.shared_window(run, window)
    return Analysis(
        run, port, queue, segments, in_flight, window, shared, link, windows, good, utilization, events, rtt_max_ns,
        entries, facts, reasons,
    )  # fmt: skip
