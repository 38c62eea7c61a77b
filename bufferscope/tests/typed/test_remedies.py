# SPDX-License-Identifier: MIT
"""A message that offers a remedy is provoked in the clean clone, and the remedy is taken from the message and followed:
then the command works. Other tests follow the remedies of sweeps that stop or fail (experiments/sweep/tests).
"""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

import pytest

from bufferscope.__main__ import main
from bufferscope.tests.typed.clone import Clone
from bufferscope.tests.typed.inputs import provide
from experiments.machine import host
from experiments.machine.host import Host
from lib.words import read_words

pytestmark = [pytest.mark.serial, pytest.mark.long]
SHORT = "CC=cubic FLOWS=2 RATE=10mbit RTT=10ms WARMUP=200ms DURATION=300ms"
RUN = f"bufferscope experiment CLOCK=virtual {SHORT}"
COMPARE = "make compare RUN=results/a WITH=results/c"
SWEEP = "bufferscope sweep tiny.yaml"


GOLDEN = host.CHECKOUT / "experiments/tests/golden/errors.txt"
FAULT = re.compile(
    r"^error: (?:\S+: )?([A-Z_]+)(?:=(.*?))? ((?:is|has|needs|makes|names|cannot) .*?)((?:allowed:|did you) .*)",
    re.MULTILINE,
)
OFFER = re.compile(r"\bas in ('[^']*'|[^\s;]+)|with ([A-Z_]+=[\w-]+)|did you mean ([A-Z_]+)\?")


class Remedy(NamedTuple):
    """`typed` provokes the message; the group of `offer` in its output is the remedy. `followed` is what a user then
    types, with the remedy in braces.
    """

    typed: str
    offer: str
    followed: str


REMEDIES = [
    Remedy("make replay", r"RUN is missing; give .*: (results/latest),", "make replay RUN={0}"),
    Remedy(
        "make import FROM=SOURCE OUTPUT=results/imported",
        r"(make replay RUN=\S+ BUF=50p)",
        "{0}",
    ),
    Remedy(f"TMPDIR=/nowhere {RUN}", r"(unset TMPDIR)", f"{{0}}; {RUN}"),
    Remedy(f"{RUN} RESULTS=/proc/x", r"choose another with (RESULTS=)", f"{RUN} {{0}}elsewhere"),
    Remedy(f"{COMPARE} OUTPUT=/proc/x.svg", r"choose another place with (OUTPUT=)", f"{COMPARE} {{0}}both.svg"),
    Remedy(
        "make export RUN=results/a FORMAT=pcapng OUTPUT=Makefile",
        r"a new (name)",
        "make export RUN=results/a FORMAT=pcapng OUTPUT=new-{0}",
    ),
    Remedy(
        "bufferscope runs RESULTS=none",
        r"run one \((bufferscope experiment)\), or name another RESULTS=",
        f"{{0}} CLOCK=virtual {SHORT} RESULTS=none && bufferscope runs RESULTS=none",
    ),
    Remedy("bufferscope runs RESULTS=never", r"name another (RESULTS=)", "bufferscope runs {0}results"),
    Remedy(
        f"truncate -s 100 results/c/rep-1/summary.json; {COMPARE}",
        r"(make replay) writes it anew",
        f"{{0}} RUN=results/c && {COMPARE}",
    ),
    Remedy(
        "truncate -s 1000 results/c/rep-1/joined.parquet; bufferscope export results/c FORMAT=csv OUTPUT=tables",
        r"(make replay) writes it anew",
        "{0} RUN=results/c && bufferscope export results/c FORMAT=csv OUTPUT=tables",
    ),
    Remedy(
        "touch results/c/rep-1/idle_rtt_after.json; bufferscope export results/c FORMAT=flent OUTPUT=c.flent.gz",
        r"idle_rtt_after.json: .*; (remove) it",
        "rm results/c/rep-1/idle_rtt_after.json && bufferscope export results/c FORMAT=flent OUTPUT=c.flent.gz",
    ),
    Remedy(
        f"rm results/c/rep-1/summary.json; {RUN}",
        r"was recorded but not analysed: (make replay RUN=\S+)",
        "{0} && test -s results/c/rep-1/summary.json",
    ),
    Remedy(
        f"{RUN} KERNEL_PACKAGE=linux-source-6.12",
        r"choose the kernel beforehand: (make kernel KERNEL_PACKAGE=)",
        f"{{0}}linux-source-6.12 && {RUN}",
    ),
    Remedy(
        "make kernel KERNEL_SOURCE=/nowhere", r"choose again: (make kernel KERNEL_PACKAGE=linux-source-)X", "{0}6.12"
    ),
    Remedy("rm build/virtual/linux; make cc", r"its parameters are not known: (make kernel)", "{0} && make cc"),
    Remedy(
        "make sweep SPEC=experiments/specs/quick.yaml",
        r"allowed: (make experiment SPEC=\S+?),",
        f"{{0}} {SHORT} CLOCK=virtual",
    ),
]


@pytest.mark.parametrize("remedy", REMEDIES, ids=lambda remedy: remedy.typed)
def test_remedy__that_a_message_offers_works(remedy: Remedy, clone: Clone) -> None:
    provide(clone, remedy.typed)
    if "results/c" in remedy.typed:  # a run that may be damaged
        clone.type("rm -rf results/c && cp -rL results/b results/c")
    refused = clone.type(remedy.typed)
    offered = re.search(remedy.offer, refused.said)
    assert offered, refused.said
    done = clone.type(remedy.followed.format(*offered.groups()))
    assert done.status == 0, done.said
    assert not re.search(remedy.offer, done.said), done.said


def test_words_that_messages_of_bad_input_offer__end_the_fault(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`as in 10ms`, `with MODE=ecn` and `did you mean FLOWS?` of the golden messages, each tried."""
    monkeypatch.setattr(host, "probe", lambda want_netem: Host(("bbr", "cubic", "reno"), netem=False))
    monkeypatch.chdir(GOLDEN.parent)
    tried, vain = 0, []
    for case, messages in re.findall(r"^\$ (.*)\n((?:error: .*\n)+)", GOLDEN.read_text(), re.MULTILINE):
        for key, value, fault, offers in FAULT.findall(messages):
            for example, other, meant in OFFER.findall(offers):
                name, _, text = (
                    other or f"{meant or key}={example.strip(chr(39)).rstrip(',') or value or 3}"
                ).partition("=")
                given = read_words(shlex.split(case), {})[0]
                if given.get(name.lower()) == text:  # the message says where the fault is one
                    continue
                given = {each: given[each] for each in given if not meant or each != key.lower()} | {name.lower(): text}
                main(["show", *(f"{each}={given[each]}" for each in given)])
                said = capsys.readouterr().err.splitlines()
                vain += [
                    (case, name, text) for line in said if re.match(rf"error: (\S+: )?{key}\b", line) and fault in line
                ]
                tried += 1
    assert vain == []
    assert tried > 80
