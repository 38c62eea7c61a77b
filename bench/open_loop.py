# SPDX-License-Identifier: MIT
"""docs/results/open-loop.csv from the sweep experiments/specs/whatif/open-loop.yaml (KEEP=all):

make sweep SPEC=experiments/specs/whatif/open-loop.yaml
python -m bench.open_loop results/open-loop >docs/results/open-loop.csv
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

from analysis.whatif import curve
from analysis.whatif.open_loop import Row
from runs.names import REPETITION, SUMMARY
from runs.quantities import BY_NAME
from runs.spec_file import load_spec

MEASURES = ("loss", "utilization_mean", "queue_delay_p99_ns")


def main(sweep: Path) -> None:
    of_traffic: dict[tuple[int, float, int], dict[int, Path]] = {}
    for repetition in sorted(sweep.glob(f"runs/*/{REPETITION}")):
        spec = load_spec(repetition)
        load = 1.0 if spec.long else float(spec.finite[0].load or 0)
        number = int(repetition.parent.name.rpartition("-r")[2])
        traffic = sum(group.flows for group in spec.long), load, number
        of_traffic.setdefault(traffic, {})[spec.buffer_packets] = repetition
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(Row._fields)
    for (flows, load, number), by_buffer in sorted(of_traffic.items()):
        run, queue = curve.load(by_buffer[max(by_buffer)])
        others = sorted(by_buffer)[:-1]  # through its own buffer a run's arrivals do what they did
        for point in curve.of_run(run, queue, run.rate, others):
            measured = json.loads((by_buffer[point.packets] / SUMMARY).read_text())
            loss, used, delay = (float(BY_NAME[name].of(measured) or 0) for name in MEASURES)
            row = Row(
                flows, load, round(point.bdp, 4), number, point.loss, loss, point.utilization, used, point.delay_p99_ms,
                delay / 1e6,
            )  # fmt: skip
            writer.writerow([f"{value:.5g}" for value in row])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
