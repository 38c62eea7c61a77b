# SPDX-License-Identifier: MIT
"""The files that documented lines read, made as a user would make them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from analysis.tests import foreign, simulate, tcp_model, two_taps
from analysis.tests.test_windows import probe_lines
from bufferscope.tests.typed.clone import Clone

BASE = "make experiment CLOCK=virtual CC=cubic RATE=20mbit RTT=10ms WARMUP=300ms DURATION=1s"


def traced(path: Path) -> None:
    """Another tool's directory of one experiment."""
    scenario = simulate.Scenario()
    foreign.write_text(path, scenario, simulate.Simulation(scenario).run())


def link(path: Path) -> None:
    """A capture of a link."""
    flows, rate_bps, buffer, end_ns = tcp_model.five_rtts(2.0)
    tcp_model.write_pcap(path, tcp_model.simulate(flows, rate_bps, buffer, end_ns)[0], flows)


def side(name: str) -> Callable[[Path], None]:
    """Makes a capture of one side of a router."""

    def make(path: Path) -> None:
        two_taps.write(path, getattr(two_taps.make(), name))

    return make


def log(path: Path) -> None:
    """A log of the senders' windows of the captures of both sides."""
    path.write_text(probe_lines(two_taps.make().before))


MAKERS: dict[str, str | Callable[[Path], None]] = {  # how the files that lines name come into being
    # b comes first, for `compare` without WITH=: the run before.
    "results/a": f"ls results/b && {BASE} FLOWS=4 BUF=1bdp NAME=whole && ln -sr results/*-whole results/a",
    "results/b": f"{BASE} FLOWS=4 BUF=0.5bdp NAME=half && ln -sr results/*-half results/b",
    "results/sixteen": f"{BASE} FLOWS=16 BUF=4bdp NAME=sixteen && ln -sr results/*-sixteen results/sixteen",
    "results/c": "cp -rL results/b results/c",
    "SOURCE": "bufferscope export results/a FORMAT=pcapng OUTPUT=source.pcapng && mv source.pcapng SOURCE",
    "results/theirs": "make import FROM=their-traces OUTPUT=results/theirs",
    "results/spang2021-twenty-packets-smoke": "make sweep SPEC=experiments/specs/spang2021/twenty-packets.yaml SMOKE=1",
    "mine.packed": "bufferscope pack results/a OUTPUT=mine.packed",
    "mycc.c": "cp hosts/congestion/template/mycc.c mycc.c",
    "my_aqm.p4": "cp p4src/aqm/template.p4 my_aqm.p4",
    "sky.csv": ".venv/bin/python -m experiments.spec.link_trace satellite sky.csv --rate 100mbit",
    "sizes.txt": "printf '1000 0\\n100000 1\\n' >sizes.txt",
    "their-traces": traced,
    "in.pcap": side("before"),
    "out.pcap": side("after"),
    "windows.log": log,
    "link.pcap": link,
    "results/link": "make import FROM=link.pcap RATE=1gbit OUTPUT=results/link",
    "trace-directory": traced,
}
EARLIER = {  # the runs that lines read without naming them
    r"(make|bufferscope) (results|rm|runs)\b": "results/sixteen ",
}


def provide(clone: Clone, typed: str) -> None:
    """Makes the files that a line reads and that are not there. results/latest is results/a, whatever ran last."""
    earlier = "".join(names for lines, names in EARLIER.items() if re.match(lines, typed))
    for name in re.findall(r"[\w./-]+", earlier + typed.replace("results/latest", "results/a")):
        name = name.removeprefix("./").removesuffix("/rep-1")
        maker = MAKERS.get(name)
        if not maker or (clone.path / name).exists() or f"OUTPUT={name}" in typed:
            continue
        if callable(maker):
            maker(clone.path / name)
            continue
        provide(clone, maker.replace(name, ""))
        made = clone.type(maker)
        assert made.status == 0, made.said
    if "quic_server.py" in typed:  # the sentence before this line says so, of all of requirements-dev.txt
        assert clone.type("pip install --quiet $(grep aioquic requirements-dev.txt)").status == 0
    if "results/latest" in typed:
        assert clone.type("ln -sfn $(readlink results/a) results/latest").status == 0
