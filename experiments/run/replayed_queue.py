# SPDX-License-Identifier: MIT
"""Sends a run's arrivals again, as datagrams, through a queue that only an experiment in virtual time has: a qdisc of
Linux, or an AQM in P4.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from experiments.lab import virtual
from experiments.lab.virtual import VirtualLab
from experiments.plan.run_plan import flow_processes
from experiments.run.runner import Ending, check_room, preflight
from experiments.setup import deploy
from experiments.spec.resolve import resolve
from hosts.traffic.open_loop import RECORDED
from lib import owner
from lib.frames import wire_bytes_of_ip
from model.experiment import Experiment
from model.groups import OPEN_LOOP

if TYPE_CHECKING:
    from analysis.read.columns import Columns
    from analysis.read.load import Run
    from analysis.whatif.queue import Setting

DIRECTORY = ".replayed"  # in the repetition, until the what-if is made
NUMBER = 1  # of the only repetition


def experiment(spec: Experiment, queue: dict[str, str], rate_bps: int) -> Experiment:
    """The experiment with the keys `queue` at the run's link, with this rate. The RTT is the default: nothing answers
    the datagrams, and a capture may have any. Raises SpecError.
    """
    from analysis.whatif.departures import MOST_IP_BYTES

    link = {"rate": f"{rate_bps}bit", "mtu": str(min(spec.mtu_bytes, MOST_IP_BYTES))}
    run = {"clock": "virtual", "traffic": OPEN_LOOP, "warmup": "0s", "duration": "1s", "seed": str(spec.seed or 1)}
    return resolve(link | run | queue, virtual.probe())


def replay(queue: Experiment, run: Run, recorded: Columns, setting: Setting) -> Columns:
    """The postcards of the arrivals `recorded` in the queue of the experiment `queue`. Raises InputError, RunError,
    Interrupted, OSError.
    """
    from analysis.read.load import load
    from analysis.whatif import departures

    deploy.ensure()
    virtual.prepare()
    spec = _with_traffic(queue, run, recorded)
    lab, directory = VirtualLab(spec), run.directory / DIRECTORY
    shutil.rmtree(directory, ignore_errors=True)  # of one that was killed
    preflight(lab, run.directory)
    try:
        with Ending() as ending, lab.processors() as processors:
            check_room(lab, run.directory, len(processors))
            (directory / "logs").mkdir(parents=True)
            departures.write(directory / departures.FILE, run, recorded)
            owner.give(directory)
            lab.record(NUMBER, directory, *processors[:1])
            ending.check()
        process = flow_processes(spec, NUMBER)[0]
        return departures.postcards(load(directory), process.first_client_port, process.server_port, run, recorded)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _with_traffic(queue: Experiment, run: Run, recorded: Columns) -> Experiment:
    """The experiment `queue` whose traffic is the arrivals of the run. Raises InputError."""
    from analysis.whatif import departures

    sent = departures.sent(recorded, queue.rate_bps)
    (group,) = queue.datagrams
    traffic = group.model_copy(update={"arrivals": RECORDED, "flows": departures.flow_numbers(run)})
    mtu_bytes = max(queue.mtu_bytes, sent.most_ip_bytes)
    return queue.model_copy(
        update={
            "name": "replay",
            "groups": (traffic,),
            "duration_ns": sent.lasts_ns + 1,  # a run waits only some seconds for a queue that is not empty at the end
            "mtu_bytes": mtu_bytes,
            "wire_bytes": wire_bytes_of_ip(mtu_bytes),
        }
    )
