# SPDX-License-Identifier: MIT
"""report.html: one file that opens offline, with embedded figures. It fetches nothing and escapes every value."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from analysis.figures import names
from analysis.figures.canvas import PHONE
from analysis.measure.virtual_time_limits import LIMITS
from analysis.read.documents import Environment, facts
from analysis.report import page
from analysis.report.page.figure import embed
from analysis.report.page.glossary import terms
from analysis.wording import verdict_text
from analysis.wording.formats import number
from analysis.wording.link_text import changes_text, rate_text
from analysis.wording.traffic_text import group_text, sizes_text, traffic_text, transfers_text
from model.experiment import SOFT, Experiment
from runs import verdict
from runs.quantities import FLOWS

TEMPLATE = Path(__file__).with_name("run_report.html.j2")
MAX_FLOWS_LISTED = 256

CAPTIONS = {
    "queue_and_windows": "Queue depth and drops (top), the sum of all flows' windows (middle) and each flow's window "
    "(bottom), on one time axis. The queue follows the aggregate window: it holds the packets beyond the BDP.",
    "policy_value": "What the user's own queue policy wrote into the postcard of each packet, by the packet's arrival.",
    "queue_depth_distribution": "Queue depth that packets found on arrival, dropped packets included.",
    "program_rates": "Bits on the wire that left the queue, by flow. Flows of programs are named by their "
    "source and destination ports.",
    "completion_times": "Finite flows that began in the measurement window: completion time, from the SYN to the last "
    "ACK, against size (triangles: flows that did not finish), and the distribution of throughput over flows.",
    "window_distribution": "Packets in flight of each flow at every ACK, and of all flows together. The dashed line is "
    "the fair share.",
    "link_rate": "The captured rate, forward, in windows of 1 ms to 1 s (top), and the connections that sent data then "
    "(bottom): open ones, and how many of equal rate would be as unequal together.",
    "link_flows": "The variance of the number of packets in a window, over its mean: 1 at every scale for a Poisson "
    "process. Sizes and least RTTs of the connections with data forward, and what limited them: "
    "flows.parquet has each.",
    "utilization": "Bits on the wire that left the queue, as a share of the link's rate. Frame overhead is included.",
    "queueing_delay": "Queueing delay of packets that were not dropped, from arrival to departure: the share of "
    "packets that waited at most that long.",
    "throughput": "Payload of each algorithm's long flows over time, and the distribution of throughput over flows.",
    "depth_against_window": "Queue depth against the sum of all windows, at the same moments. In the fluid model the "
    "queue holds the packets beyond the BDP (dashed).",
    "zoom_on_loss": "Packet by packet around one loss: queue length (top) and windows (bottom).",
}
CAPTIONS_OF_MANY_FLOWS = {
    "queue_and_windows": "Queue depth and drops (top), the sum of all flows' windows (middle) and the distribution of "
    "the flows' windows (bottom), on one time axis. The queue follows the aggregate window: it holds the "
    "packets beyond the BDP.",
    "window_distribution": "Packets in flight at every ACK: of each flow (in the order of the flows' medians), and of "
    "all flows together. The dashed line is the fair share.",
}


def render(
    summary: dict[str, Any], environment: Environment, figures: Path | None, whatifs: Sequence[dict[str, Any]] = (),
    note: str | None = None,
) -> str:  # fmt: skip
    """The page as HTML. `figures` is the directory with <name>.svg of each figure, None if none were drawn; `whatifs`
    are the run's what-ifs (whatif/stored.py). Raises OSError if a figure is missing, InputError if it is damaged.
    """
    experiment = verdict.experiment(summary)
    drawn = names(experiment) if figures else ()
    return page.render(
        TEMPLATE,
        s=summary,
        sentence=verdict_text.sentence(summary),
        shares=verdict_text.shares(summary),
        still_true=[] if summary["valid"] or experiment.imported else verdict_text.still_true(summary),
        images={name: embed(figures / f"{name}.svg") for name in drawn} if figures else {},
        captions=captions(summary),
        kept_up=kept_up(summary),
        names=drawn,
        whatifs=whatifs,
        note=note,
        caveat=whatifs[0]["caveat"] if whatifs else "",
        lab=lab_line(summary, environment),
        exact=LIMITS[summary["lab"]["switch"]] if experiment.in_virtual_time else None,
        facts=facts(environment.document),
        again=again(environment),
        environment=json.dumps(environment.document, indent=1, sort_keys=True),
        terms=terms(),
        chain=verdict_text.RECORD,
        max_flows=MAX_FLOWS_LISTED,
        flow_quantities=FLOWS,
        mix=traffic_text(experiment),
        link=rate_text(experiment),
        queue_rule=experiment.queue_rule,
        changes=changes_text(experiment),
        sizes=sizes_text(experiment.open_loop.sizes) if experiment.open_loop else "",
        group_names=[group_text(group, experiment.has_own_settings) for group in experiment.flow_groups],
        finite_names=[transfers_text(group) for group in experiment.finite],
    )


def pictures(spec: Experiment, repetition: Path) -> list[str]:
    """The figures of a repetition's page, as paths below the repetition. Older runs have none for phones."""
    paths = [f"figures/{name}.{kind}" for name in names(spec) for kind in ("svg", "png")]
    for_phones = [f"figures/{name}{PHONE}.svg" for name in names(spec)]
    return paths + [path for path in for_phones if (repetition / path).exists()]


def captions(summary: dict[str, Any]) -> dict[str, str]:
    """Captions by figure. A caption explains only the elements that this run's figure has."""
    depth, needed = CAPTIONS["queue_depth_distribution"], summary["rules"]["sqrt_n_packets"]
    if summary.get("open_loop"):
        model = summary["open_loop"].get("model")
        depth += f" Dots are the theory, {model}." if model else ""
    elif needed and needed < summary["buffer_packets"]:
        depth += " Shaded depths are more than BDP/√n below full: by that rule the queue never falls so far."
    of_many = CAPTIONS_OF_MANY_FLOWS if summary.get("flows_distribution") else {}
    more = {"queue_depth_distribution": depth}
    if summary.get("finite_flows"):
        more["queue_and_windows"] = CAPTIONS["queue_and_windows"].split(" The queue follows", 1)[0] + (
            " Windows are those of long flows: finite flows are not traced."
        )
    texts = CAPTIONS | of_many | more
    if verdict.experiment(summary).rate_changes:
        texts["queue_and_windows"] += " The green line is the rate in force; the BDP follows it."
        for name in ("depth_against_window", "window_distribution"):  # without the lines that need one BDP
            texts[name] = texts[name].split(" In the fluid")[0].split(" The dashed line")[0]
    if summary.get("link_lost") is not None:
        texts["queue_and_windows"] += " Brown marks are packets that the link lost behind the queue."
    return texts


def kept_up(summary: dict[str, Any]) -> str:
    """The sentence about the fidelity of a valid run."""
    if summary["clock"] != "virtual":
        return "the emulation kept up with real time"
    if summary["lab"]["switch"] == "process":
        return (
            f"every frame departed at most {LIMITS['process'].lateness_ns / 1e3:g} µs of virtual time after it was due"
        )
    return "every frame left in the very ns of virtual time that it was due"


def lab_line(summary: dict[str, Any], environment: Environment) -> str:
    """The sentence about the lab: clock, kernel, switch, processor, and the cost of a second of virtual time."""
    lab, line, model = summary["lab"], summary["fidelity"]["line"], environment.cpu
    words = [f"Linux {lab['kernel'] or 'of unknown version'}"]
    clock = "a wall clock" if summary["clock"] != "virtual" else "its own clock, virtual too"
    if lab["target"] == SOFT:
        words.append(f"the switch a {lab['switch']}")
    else:
        programs = "".join(f" ({name} {version})" for name, version in lab["programs"].items())
        words.append(f"the switch {lab['target']}{programs}, with {clock}{', behind it a delay line' * bool(line)}")
    if summary["clock"] != "virtual":
        return f"in real time: {', '.join(words)}{f', {model}' if model else ''}"
    if lab["wall_s_per_traffic_s"] is not None:
        words.append(f"{number(lab['wall_s_per_traffic_s'], 3)} s of wall time per second of traffic")
    return f"in virtual time: {', '.join(words)}{f' ({model})' if model else ''}"


def again(environment: Environment) -> str:
    """The command that repeats the run, quoted for a shell; "" if the run's place is not known."""
    place = environment.place
    return "" if place is None else f"bufferscope experiment {shlex.quote(f'SPEC=results/{place}')}"
