# SPDX-License-Identifier: MIT
"""Every code block of README.md and docs/ is run: shell by test_typed.py, the others here. A new block fails a test
until it is run, or has a reason here.
"""

from __future__ import annotations

import json
import os
import re
import shlex

import pytest

from bufferscope.__main__ import main
from bufferscope.commands import COMMANDS
from bufferscope.tests.typed.clone import Clone
from bufferscope.tests.typed.documents import Block, blocks, in_sentences
from bufferscope.tests.typed.inputs import provide
from bufferscope.tests.typed.looks import experiment, targets, words_of
from bufferscope.tests.typed.test_typed import TYPED
from experiments.machine import host, machine_speed
from experiments.machine.host import Host
from experiments.run import cost_question
from experiments.spec.keys import KEYS
from experiments.spec.resolve import resolve

pytestmark = [pytest.mark.serial, pytest.mark.long]
# A word of each block that is not shell, or needs a switch -> the test that runs it, or why none does.
OTHERS = {
    "name: twenty-packets": "test_spec_of_a_sweep__is_one",
    "clock: virtual\nrate": "test_spec_with_groups__runs",
    "import bufferscope as bs": "test_python__shows_a_run",
    "mixed (1 of 4)": "test_rows_of_advise__are_what_it_prints",
    "controlplane apply --file": "test_control_plane__sets_a_switch",
    "controlplane parameters target": "needs a BMv2 with this policy; controlplane/tests gives the command",
    "sender --1 simple_switch": "a drawing",
    "15594 cells": "the output of a Tofino",
    "expected     utilization": "the output of the block above it",
    "#define mark_to_drop": "lines of others' programs",
    "rate: 100mbit\nrtt: 20ms\nwarmup: 5s": "part of a spec; experiments/tests has such groups",
    "control Arrival(in policy_input_t seen, inout policy_verdict_t verdict)\ncontrol Dep": "declarations; p4src/tests",
    '@scheduler("drr", 2': "part of a program; p4src/tests",
    "action set(bit<48> target_ns": "part of a program; p4src/tests",
    "tcpdump -i eth0": "needs a router; analysis/tests has such captures",
    "open results/mine": "needs the captures of a router; analysis/tests",
    "TABLES=commands.txt RATE=100mbit": "needs others' program; experiments/tests has one",
    "bs/bin/pip install": "bufferscope/tests/test_wheel.py installs and runs a wheel",
    "podman load -i": "bufferscope/tests/test_image.py makes and runs an image",
    "bufferscope verify NAME.packed": "bufferscope/tests/test_verify.py",
    "open-p4studio.git": "needs the SDE of a Tofino",
    "whl[notebook]' jupyterlab": "bufferscope/tests/test_wheel.py installs and runs a wheel",
    **dict.fromkeys(
        ("256.5 ms median", "85.25 % of", "87.88 % of", "6.3 % of the goodput", "99.36 % of"),
        "the output of notebooks; bufferscope/tests/test_lab.py",
    ),
}


def block(word: str) -> Block:
    (found,) = [each for each in blocks() if word in each.text]
    return found


def test_blocks__are_shell_or_have_a_test() -> None:
    left = [each for each in blocks() if not each.typed or "python -m controlplane" in each.text]
    assert sorted(OTHERS) == sorted(word for each in left for word in OTHERS if word in each.text)
    assert len(left) == len(OTHERS)


@pytest.mark.parametrize("word", [word for word, how in OTHERS.items() if not how.startswith("test_")])
def test_block__has_a_reason(word: str) -> None:
    pytest.skip(f"{block(word).document}, {word}: {OTHERS[word]}")


def test_spec_of_a_sweep__is_one(clone: Clone) -> None:
    text = block("name: twenty-packets").text
    searching = re.sub(r"(?m)^headlines.*\n|, buf: 20pkt|^# (?=search)", "", text)
    for spec, runs in ((text, r"12 points, 12 runs"), (searching, r"12 points, about \d+ runs")):
        clone.type("mkdir -p mine && cp -r experiments/specs/spang2021/common mine")
        (clone.path / "mine/sweep.yaml").write_text(spec)
        shown = clone.type("make sweep SPEC=mine/sweep.yaml SMOKE=1 SHOW=1")
        assert shown.status == 0, shown.said
        assert re.search(f"twenty-packets-smoke: {runs} in virtual time", shown.said), shown.said


def test_spec_with_groups__runs(clone: Clone) -> None:
    (clone.path / "groups.yaml").write_text(block("clock: virtual\nrate").text)
    done = clone.type("make experiment SPEC=groups.yaml WARMUP=500ms DURATION=1s")
    experiment(clone, done, words_of(done.typed)[1])
    assert len(json.loads((done.made[0] / "rep-1/summary.json").read_text())["groups"]) == 5


def test_python__shows_a_run(clone: Clone) -> None:
    sweep = "results/spang2021-twenty-packets-smoke"
    provide(clone, f"results/latest {sweep}")
    shown = block("import bufferscope as bs").text.replace("results/NAME", sweep)
    without_pandas = re.sub(r"(?m)^.*to_pandas.*\n", "", shown)
    said = "print(run.valid, run.joined.height, bs.index('results').height, sweep.means.height)\n"
    (clone.path / "shown.py").write_text(without_pandas + said)
    done = clone.type("python shown.py")
    assert done.status == 0, done.said
    valid, rows, runs, means = done.said.split()
    assert (valid, int(rows) > 100, int(runs) >= 1, int(means) >= 1) == ("True", True, True, True)


def test_rows_of_advise__are_what_it_prints(clone: Clone) -> None:
    """Words of the block's lines in the output of the command that the sentence before the block has."""
    shown = block("mixed (1 of 4)")
    text = (clone.path / shown.document).read_text()
    command = re.search(r"`(make advise [^`]*)` says, among other rows", text)
    assert command
    said = " ".join(clone.type(command[1]).said.split())
    assert [line for line in shown.text.splitlines() if " ".join(line.split()) not in said] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="the switch needs root")
def test_control_plane__sets_a_switch(clone: Clone) -> None:
    """The lines of the block, one after the other, on a switch without hosts in namespaces of its own."""
    apply, threshold, mode, watch = block("controlplane apply --file").typed
    mode = mode.replace("--target bmv2 --address 127.0.0.1:9090", "--file switch.yaml")  # BMv2 may not be installed
    ports = ("sender", "receiver", "collector")
    script = [
        "set -e; mount -t tmpfs none /run; cp controlplane/switch.example.yaml switch.yaml",
        *(
            f"ip link add to_{port} up type veth peer name {port}; ip link set {port} up; "
            f"ethtool -K to_{port} tso off gso off"
            for port in ports
        ),
        "build/softswitch --control /run/switch.sock "
        + " ".join(f"--port {number}=to_{port}" for number, port in enumerate(ports, 1))
        + " >switch.log 2>&1 &",
        "timeout 60 sh -c 'until test -S /run/switch.sock; do sleep 0.05; done'",
        apply, threshold, mode, f"{apply.replace('apply', 'diff')} || true",
        f"for s in 2 6 20; do timeout --signal=INT $s {watch} >watched 2>/dev/null || test -s watched && break; done",
        "cat watched",
    ]  # fmt: skip
    (clone.path / "control.sh").write_text("\n".join(script))
    done = clone.type("unshare --net --mount --pid --fork --kill-child bash control.sh")
    assert done.status == 0, done.said
    for text in ("tail-drop from 163 packets", "-> tail-drop from 81", "-> ecn marks from 40", "would change", "p99"):
        assert text in done.said, done.said


def test_commands_in_sentences__are_ones(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Their names and keys exist, and experiments resolve. As typed, the experiments of code blocks need no YES=1."""
    monkeypatch.setattr(host, "probe", lambda want_netem: Host(("bbr", "cubic", "reno"), netem=True))
    monkeypatch.setattr(machine_speed, "slowness", lambda processes: 1.0)
    monkeypatch.chdir(host.CHECKOUT)
    for text in in_sentences():
        name, given = words_of(text)
        assert name in {*COMMANDS, *targets()}, text
        assert name not in COMMANDS or set(given) <= {*COMMANDS[name].read_keys(), *KEYS}, text
        assert name != "experiment" or main(["show", *shlex.split(text)[2:]]) == 0, (text, capsys.readouterr().err)
    for name, given in (words_of(part) for typed in TYPED for part in typed.split(" && ")):
        if name == "experiment" and not re.search(r"\./|file:|trace:|\.p4|\.pcap|spec|inventory", str(given)):
            spec = {key: value for key, value in given.items() if key in KEYS}
            cost_question.ask(resolve(spec, host.probe(False)), 1, yes=False)
