# SPDX-License-Identifier: MIT
"""The lab in the ns-3 simulator (simulator/): the flows, starts, ports, queue and links of the other labs, with ns-3's
TCP. The simulation is a second opinion on the other labs' results with Linux's TCP.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from statistics import median
from typing import Any

from controlplane.soft import SourceAddress
from experiments.lab.interface import ParallelLab
from experiments.lab.progress import RunProgress
from experiments.lab.repetition import write_spec
from experiments.machine import host
from experiments.machine.host import Host
from experiments.plan.repetition_plan import RunPlan
from experiments.plan.run_plan import plan_run
from experiments.setup import environment
from experiments.spec.topology import RECEIVER, SENDER
from hosts.traffic import epoll_flows
from hosts.traffic.plan import LongFlowsPlan, parse
from hosts.tune.tcp_options import LINUX
from lib import files, syscalls
from lib.errors import RunError
from model.experiment import Experiment
from runs import results

SIMULATOR = host.BUILD / "simulator"
MISSING = "build/simulator is missing, which SWITCH=ns3 runs: make simulator installs ns-3 and builds it"
# Linux's algorithms that ns-3 has as well (simulator/scenario.c maps the names).
CONGESTION_CONTROLS = (
    "bbr", "bic", "cubic", "dctcp", "highspeed", "htcp", "hybla", "illinois", "lp", "reno", "scalable", "vegas", "veno",
    "westwood", "yeah",
)  # fmt: skip
START_MONO_NS = 60 * 10**9  # as in virtual time
LEAST_INTERVAL_NS = 1000  # between two records of goodput
LINUX_MEMORY_PER_BYTE = 2  # most memory per byte of a segment in a Linux socket's buffer; ns-3 counts bytes only
BOTTLENECK, COLLECTOR_PORT = "2", "3"


def probe() -> Host:
    """The capabilities of ns-3."""
    return Host(CONGESTION_CONTROLS, netem=False, clock="virtual", kernel="ns-3")


class Ns3Lab(ParallelLab):
    """Each repetition is a process of the simulator."""

    def missing(self) -> list[str]:
        if os.access(SIMULATOR, os.X_OK):
            return []
        return [MISSING]

    def record(self, number: int, directory: Path, processor: int | None) -> None:
        plan = plan_run(self.spec, number)
        flows = parse(dict(plan.traffic.options))
        write_spec(plan, directory)
        begin_s = time.monotonic()
        with RunProgress(plan.title, self.slow * plan.durations.repetition_s) as progress:
            progress.phase("simulating with ns-3")
            simulate(options(self.spec, plan, flows, directory), flow_lines(plan, flows), directory, processor)
        wall_s = time.monotonic() - begin_s
        outcome = json.loads((directory / "simulator.json").read_text())
        for name, content in documents(self.spec, plan, flows, outcome).items():
            files.write_json(directory / f"{name}.json", content)
        results.record(directory, world(plan, outcome, wall_s))


def options(spec: Experiment, plan: RunPlan, flows: LongFlowsPlan, directory: Path) -> list[str]:
    """The command line of the simulator, without its name."""
    marks_from = spec.ecn_threshold_packets
    numbers = {
        "rate-bps": spec.rate_bps,
        "data-delay-ns": plan.settings.forth_ns,
        "ack-delay-ns": plan.settings.back_ns,
        "mtu": spec.mtu_bytes,
        "threshold-packets": spec.buffer_packets if marks_from is None else marks_from,
        "limit-packets": spec.buffer_packets if spec.mode == "ecn" else plan.sizes.pool_packets,
        "start-mono-ns": START_MONO_NS,
        "duration-ns": flows.duration_ns,
        "drain-ns": flows.drain_ns + spec.rtt_ns + 10**9,
        "connect-interval-ns": flows.connect_interval_ns,
        "goodput-interval-ns": max(LEAST_INTERVAL_NS, spec.rtt_ns),
        "seed": 1 + plan.machine_seed % (2**32 - 1),
    }
    tcp = spec.tcp or LINUX
    texts = {
        "initial-window": tcp["initcwnd"], "acks": tcp["acks"], "sack": tcp["sack"],
        "pacing": spec.shared.pacing or "off", "mode": spec.mode, "directory": directory,
    }  # fmt: skip
    bound = {"window-packets": spec.shared.window_packets} if spec.shared.window_packets else {}
    if bytes_of_memory := plan.setup.get("tune_buffer_bytes"):  # the only limit of an access link's queue
        bound["socket-bytes"] = bytes_of_memory // LINUX_MEMORY_PER_BYTE
    return [f"--{name}={value}" for name, value in (numbers | texts | bound).items()]


def flow_lines(plan: RunPlan, flows: LongFlowsPlan) -> str:
    """Standard input of the simulator: the flows of tcp_flows without the settings of Linux's TCP, but with delay and
    access link. Every long flow has its own delay and link; a finite flow has the delay and link of its source address.
    """
    paths = {key.src_addr: settings for key, settings in plan.settings.flow_settings if isinstance(key, SourceAddress)}
    of_long = [
        {"delay": flow.extra_delay_ns, "access": flow.access_bps, "link": flow.access_link}
        for flow in plan.traffic.flows
    ]
    rates = plan.settings.shared_links_bps
    lines = []
    for number, line in enumerate(epoll_flows.flow_lines(flows)):
        words = line.split()
        source = next((word.removeprefix("from=") for word in words[6:] if word.startswith("from=")), "")
        settings = of_long[number] if number < len(of_long) else paths.get(source, {})
        access = rates[settings["link"]] if settings.get("link") else settings.get("access", 0)
        more = {"from": source, "access": access, "link": settings.get("link", 0)}
        named = [f"{name}={value}" for name, value in more.items() if value]
        lines.append(" ".join([*words[:4], str(settings.get("delay", 0)), *words[4:6], *named]) + "\n")
    return "".join(lines)


def simulate(words: list[str], flows: str, directory: Path, processor: int | None) -> None:
    """Runs the simulator, which ends with this process. Raises RunError with its last line."""

    def begin() -> None:
        syscalls.die_with_parent(signal.SIGKILL)
        if processor is not None:
            os.sched_setaffinity(0, {processor})

    log = directory / "logs/simulator.log"
    with log.open("w") as output:
        done = subprocess.run(
            [str(SIMULATOR), *words], input=flows, text=True, stdout=output, stderr=output, check=False,
            preexec_fn=begin, env={"PATH": os.environ.get("PATH", os.defpath)},
        )  # fmt: skip
    if done.returncode:
        lines = log.read_text(errors="replace").strip().splitlines()
        raise RunError(lines[-1] if lines else f"the simulator ended with status {done.returncode} and said nothing")


def documents(
    spec: Experiment, plan: RunPlan, flows: LongFlowsPlan, outcome: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """The JSON files of a repetition, keyed by their names without .json. Fields about programs that a simulation does
    not have are left out.
    """
    samples = outcome["idle_rtt_ns"]
    made = (
        outcome["arrival_drops"] + outcome["departure_drops"] + outcome["departed"]
    )  # a packet that is still queued has no postcard yet
    addresses = (SENDER.ipv4, RECEIVER.ipv4)
    return {
        "switch": {
            "target": "soft",
            "program": {"name": "simulator", "executor": "ns3"},
            "bottleneck_port": int(BOTTLENECK),
            "settings": {
                "1": {"rate": 0, "delay": plan.settings.back_ns},
                BOTTLENECK: {"rate": spec.rate_bps, "delay": plan.settings.forth_ns},
                COLLECTOR_PORT: {"rate": 0, "delay": 0},
            },
            "counters": {
                "arrivals": {BOTTLENECK: {"packets": outcome["arrivals"], "bytes": outcome["arrival_bytes"]}},
                "arrival_drops": {BOTTLENECK: {"packets": outcome["arrival_drops"]}},
                "departure_drops": {BOTTLENECK: {"packets": outcome["departure_drops"]}},
                "arrival_marks": {BOTTLENECK: {"packets": outcome["marks"]}},
                "postcards_made": {COLLECTOR_PORT: {"packets": made}},
            },
        },
        "collector": {"received": made, "stored": outcome["postcards_stored"]},
        "tracer": {"events": outcome["probes"] + outcome["retransmits"], "stored": outcome["tcp_stored"], "lost": 0},
        "traffic_sink": {
            "interval_ns": max(LEAST_INTERVAL_NS, spec.rtt_ns),
            "records_stored": outcome["goodput_stored"],
            "flows": outcome["sink"],
        },
        "traffic": epoll_flows.describe(flows, addresses, 0, traffic_report(outcome), [], []),
        "idle_rtt": {
            "samples_ns": samples, "min_ns": min(samples), "median_ns": int(median(samples)), "sent": len(samples),
            "lost": 0,
        },
    }  # fmt: skip


def traffic_report(outcome: dict[str, Any]) -> dict[str, Any]:
    """The simulator's flows in the form of tcp_flows' report."""
    return {
        "start_mono_ns": START_MONO_NS,
        "end_mono_ns": outcome["end_mono_ns"],
        "ended_mono_ns": outcome["end_mono_ns"],
        "finite": outcome.get("finite", {}),
        "flows": [
            {"client_port": flow["src_port"], "connected_mono_ns": START_MONO_NS}
            | {name: flow[name] for name in ("started_mono_ns", "bytes_acked")}
            for flow in outcome["flows"]
        ],
    }


def world(plan: RunPlan, outcome: dict[str, Any], wall_s: float) -> dict[str, Any]:
    """The content of environment.json."""
    traffic_s = plan.durations.traffic_ns / 1e9
    simulated = {
        "simulator": outcome["simulator"], "events": outcome["events"],
        "wall_s_per_traffic_s": round(wall_s / traffic_s, 3),
    }  # fmt: skip
    return environment.machine() | {
        "program": {"name": "simulator", "executor": "ns3"},
        "kernel": {"release": outcome["simulator"]},
        "virtual_machine": simulated,
        "phases_s": {"simulator": round(wall_s, 3)},
    }
