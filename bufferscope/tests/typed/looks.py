# SPDX-License-Identifier: MIT
"""What the commands must leave and print. `LOOKS` has one row per command and make target: the files that the command
writes, which are removed beforehand, and a function that looks at the result.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from bufferscope.commands import COMMANDS
from bufferscope.tests.typed.clone import Clone, Done
from experiments.spec.keys import KEYS
from experiments.tests.conftest import faults
from lib import units
from lib.words import read_words

Words = dict[str, Any]
PCAPNG = b"\x0a\x0d\x0d\x0a"


class Look(NamedTuple):
    """`writes`: paths in the clone, with keys of the command's words in braces."""

    at: Callable[[Clone, Done, Words], None]
    writes: tuple[str, ...] = ()


def words_of(typed: str) -> tuple[str, Words]:
    """The name of a command or of a target of make, and its words."""
    said = shlex.split(typed.removeprefix("sudo "))
    name, rest = ("cp", []) if said[0] == "cp" else (said[1], said[2:])
    first = COMMANDS[name].first if name in COMMANDS else ()
    return name, read_words(rest, COMMANDS[name].read_keys() if name in COMMANDS else {}, first)[0]


def packets(given: Words, key: str, bdp: float) -> float:
    """A buffer in packets."""
    quantity = units.parse(given[key], ("packets", "bdp", "bytes"))
    factor = {"packets": 1.0, "bdp": bdp, "bytes": 1 / 1500}[quantity.dimension]
    return float(quantity.amount) * factor


def summary(repetition: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((repetition / "summary.json").read_text())
    return content


def in_range(found: dict[str, Any]) -> None:
    """The numbers of a run make sense together."""
    depth, ledger = found["queue_depth_packets"], found["ledger"]
    assert 0.05 < found["utilization"]["mean"] <= 1.001
    # A threshold in bytes lies within a packet; buffer_packets is the nearest number of full ones.
    assert 0 <= depth["p50"] <= depth["p99"] <= depth["max"] <= found["buffer_packets"] + 1
    assert 0 <= found["drop_fraction"] < 0.5
    assert found["arrivals"] > 100
    sent = ledger["postcards_sent"]
    assert sent >= found["arrivals"]
    assert ledger["postcards_received"] == ledger["postcards_stored"] == ledger["postcards_rows"] == sent


def experiment(clone: Clone, done: Done, given: Words) -> None:
    (run,) = done.made
    assert (clone.results / "latest").resolve() == run
    for number in range(1, int(given.get("reps", 1)) + 1):
        repetition = run / f"rep-{number}"
        found, spec = summary(repetition), yaml.safe_load((repetition / "spec.yaml").read_text())
        assert not faults(found), found["reasons"]
        assert found["valid"] or found["clock"] == "real"  # late, because the machine is busy
        in_range(found)
        assert found["clock"] == given.get("clock", found["clock"])
        if "rate" in given and not given["rate"].startswith("trace:"):
            first, *steps = given["rate"].split(",")
            assert spec["rate_bps"] == units.parse(first, ("rate",)).amount
            assert bool(spec.get("rate_steps")) == bool(steps)
        if "buf" in given:
            assert (
                abs(packets(given, "buf", found["bdp_packets"]) - found["buffer_packets"])
                <= 0.03 * found["buffer_packets"] + 1
            )
        if "cc" in given and given.get("traffic", "long") == "long":
            parts = [part.rpartition(":") for part in given["cc"].split(",")]
            flows = {Path(cc or number).stem: int(number if cc else given["flows"]) for cc, _, number in parts}
            assert {group["cc"]: group["flows"] for group in spec["groups"]} == flows
        figures = [path for path in (repetition / "figures").glob("*.png") if path.stat().st_size > 5000]
        assert len(figures) >= 3
        assert (repetition / "report.html").read_text().count("<figure") >= len(figures)
    assert f"{run.name}/rep-1/report.html" in done.said


def replay(clone: Clone, done: Done, given: Words) -> None:
    repetition = (clone.path / given["run"]).resolve() / "rep-1"
    found = summary(repetition)
    is_link = "imported" in found["spec"]  # its load is not ours to know
    if not is_link:
        in_range(found)
    if not {"buf", "queue", "mode"} & given.keys():
        assert found["valid"]
        assert all((repetition / name).stat().st_mtime > done.begin_s for name in ("summary.json", "report.html"))
        return
    assert "Senders would have reacted" in done.said
    kind, picture = ("curve", "curve.png") if ".." in given.get("buf", "") else ("whatif", "queue.png")
    made = max(repetition.glob(f"{kind}-*"), key=lambda path: path.stat().st_mtime_ns)
    assert (made / picture).stat().st_size > 5000
    if kind == "curve":
        assert len((made / "curve.csv").read_text().splitlines()) > 20
        return
    asked, before = (summary(made)[f"{whose}_measures"] for whose in ("whatif", "run"))
    if "buf" in given:
        assert f"->  {packets(given, 'buf', found['bdp_packets']):.0f} packets, tail-drop" in done.said
    else:
        rule = f"{given['mode']} and tail-drop" if "mode" in given else f"Linux's {given['queue'].partition(':')[2]}"
        assert re.search(rf"->  \d+ packets, {rule}, ", done.said)
    assert asked["arrivals"] == before["arrivals"]
    assert before["drops"] == found["drops"]
    assert asked["drops"] > before["drops"] or is_link


def runs(clone: Clone, done: Done, given: Words) -> None:
    head, *rows = done.said.splitlines()
    assert head.split()[:3] == ["run", "clock", "cc"]
    assert rows
    if "cc" in given:
        assert all(given["cc"] in row.split()[2] for row in rows)
    else:
        names = {row.split("/")[0] for row in rows}
        assert {run.name for run in clone.runs()} <= names


def sweep(clone: Clone, done: Done, given: Words) -> None:
    valid, of = map(int, re.search(r"(\d+) of (\d+) runs are valid", done.said).groups())  # type: ignore[union-attr]
    assert valid == of >= 2
    (directory,) = {Path(path) for path in re.findall(r"(\S+)/report\.html", done.said)}
    sweep_report(clone, done, {"sweep": clone.path / directory})


def sweep_report(clone: Clone, done: Done, given: Words) -> None:
    directory = clone.path / given["sweep"]
    page = (directory / "report.html").read_text()
    assert (directory / "report.html").stat().st_mtime > done.begin_s
    jobs = list((directory / "runs").glob("*/rep-1/summary.json"))
    assert len(jobs) >= 2
    assert all(path.parts[-3] in page for path in jobs)


def job(clone: Clone, done: Done, given: Words) -> None:
    in_range(summary(clone.path / given["sweep"] / "runs" / given["name"] / "rep-1"))


def figures(clone: Clone, done: Done, given: Words) -> None:
    drawn = re.search(r"(\d+) figures? from .* -> (\S+)", done.said)
    assert drawn, done.said
    sizes = [path.stat().st_size for path in (clone.path / drawn[2]).glob("*.png")]
    assert len(sizes) >= int(drawn[1]) > 0
    assert min(sizes) > 5000


def export(clone: Clone, done: Done, given: Words) -> None:
    output = clone.path / given["output"]
    assert output.read_bytes()[:4] == PCAPNG
    repetition = clone.path / given["run"]
    repetition = repetition if repetition.name.startswith("rep-") else repetition / "rep-1"
    assert output.stat().st_size > 150 * summary(repetition)["ledger"]["postcards_stored"]


def imported(clone: Clone, done: Done, given: Words) -> None:
    found = summary(clone.path / given["output"] / "rep-1")
    assert found["reasons"][0].startswith("imported: no ledger")
    assert 0 < found["utilization"]["mean"] <= 1.001
    assert found["arrivals"] > 100


def advise(clone: Clone, done: Done, given: Words) -> None:
    took = re.findall(r"(?:start with|take) BUF=(\d+)p", done.said, re.IGNORECASE)
    assert took, done.said
    if "from" in given:  # rate and RTT are those of the capture
        return
    rate, rtt = units.parse(given["rate"], ("rate",)), units.parse(given["rtt"], ("time",))
    bdp = float(rate.amount * rtt.amount / 10**9 / 8 / 1538)
    assert all(1 <= int(number) <= 2 * bdp + 1 for number in took)
    if given.get("advise") == "full":
        assert len(re.findall(r"^ *\d+  ", done.said, re.MULTILINE)) >= 7
    assert ("Measured" in done.said) == (given.get("measure") == "1")


def compare(clone: Clone, done: Done, given: Words) -> None:
    assert "utilization" in done.said


def says(*expected: str) -> Look:
    def look(clone: Clone, done: Done, given: Words) -> None:
        assert [text for text in expected if text not in done.said] == []

    return Look(look)


def lists_targets(clone: Clone, done: Done, given: Words) -> None:
    assert {line.split()[0] for line in done.said.splitlines()} == set(targets())


def targets() -> list[str]:
    """The targets of make that `make help` explains."""
    return re.findall(r"^([a-z0-9-]+):.*## ", (Path(__file__).parents[3] / "Makefile").read_text(), re.MULTILINE)


def completes(clone: Clone, done: Done, given: Words) -> None:
    offered = clone.type('source <(bufferscope completion bash); COMP_LINE="bufferscope exp"; COMP_POINT=15; '
                         '_bufferscope; echo "${COMPREPLY[@]}"')  # fmt: skip
    assert offered.said.split() == ["experiment", "export"]


def kernel(clone: Clone, done: Done, given: Words) -> None:
    assert clone.type("build/virtual/linux --version").said.strip() in done.said


def built(clone: Clone, done: Done, given: Words) -> None:
    assert clone.type("build/tcp_flows --help").said


def unchanged(clone: Clone, done: Done, given: Words) -> None:
    assert re.search(r"mypy +ok", done.said)
    assert clone.type("git status --porcelain --untracked-files=no").said == ""


def cleaned(clone: Clone, done: Done, given: Words) -> None:
    assert not any((clone.path / name).exists() for name in ("build", ".venv", ".ruff_cache"))
    assert (clone.results / "latest").exists()


def copied(clone: Clone, done: Done, given: Words) -> None:
    source, target = (clone.path / name for name in shlex.split(done.typed)[1:])
    assert target.read_bytes() == source.read_bytes()


def p4(clone: Clone, done: Done, given: Words) -> None:
    assert ("target_ns" if given.get("do") == "check" else "nothing changed") in done.said


LOOKS = {
    "cp": Look(copied),
    "experiment": Look(experiment),
    "show": says("rate_bps: 200000000", "buffer_packets: "),
    "sweep": Look(sweep),
    "figures": Look(figures),
    "results": says("index.html: "),
    "rm": says("nothing to remove"),
    "runs": Look(runs),
    "replay": Look(replay),
    "export": Look(export, ("{output}",)),
    "import": Look(imported, ("{output}",)),
    "sweep-report": Look(sweep_report),
    "advise": Look(advise),
    "compare": Look(compare),
    "doctor": says("virtual time ", "real time ", "p4c "),
    "pack": says("on another machine: "),
    "verify": says("the same bytes"),
    "unpack": says("each as packed"),
    "leftovers": says("nothing is left"),
    "cc": says("cubic ", "bbr3 ", "virtual time: Linux ", "real time: Linux "),
    "parameters": says(*(f"{key.upper()} " for key in KEYS)),
    "advise-parameters": says("RATE ", "RTT ", "FLOWS ", "BUDGET "),
    "deploy": Look(built, ("build/deployed", "build/tcp_flows")),
    "kernel": Look(kernel, ("build/virtual/linux",)),
    "p4": Look(p4),
    "bench": says("analysis"),
    "completion": Look(completes),
    "job": Look(job, ("{sweep}/runs/{name}",)),
    "help": Look(lists_targets),
    "build": Look(built, ("build/tcp_flows",)),
    "compile": Look(built, ("build/tcp_flows",)),
    "simulator": Look(experiment, ("build/simulator",)),
    "lint": Look(unchanged),
    "format": Look(unchanged),
    "clean": Look(cleaned),
}
