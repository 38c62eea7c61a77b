# SPDX-License-Identifier: MIT
"""Random requests and random frames into the core, and the code around the core (shell_test.c): both are built with
address and undefined-behaviour sanitizers.
"""

import subprocess

import pytest

from .core_driver import ROOT, make
from .translate import test_meters, test_passes, test_queues, test_stacks, test_varbit, test_wide

PROGRAMS = {  # of tests/translate, with requests that fit them
    "checksums": [],
    "clones": [
        "mirror set 5 2",
        "mirror set 6 3",
        "register write I.values 3 0xfffff",
        "register read wide_values 0 4",
    ],
    "expressions": [],
    "names": ["table set goto 9 = memset"],
    "parser": [],
    "tables": [
        "table set exact_one 1 = stop",
        "table set exact_two 0x20010db8000000000000000000000001 511 = found_wide 300 1 5",
        "table set lpm_one 0x0a000000/8 = found 5",
        "table delete lpm_one 0x0a000000/8",
        "table set lpm_wide 1 0/0 = found 7",
        "table set ternary_two 2&&&3 * = found 9 priority 4",
        "table set mixture 1 0x0a010000/16 100..200 0x8&&&0xc = found 2 priority 2",
        "table default no_key missed",
        "table dump mixture",
        "counter read exact_hits",
    ],
}
FRAGMENTS = {  # written by test modules
    "stacks": (test_stacks.write, []),
    "passes": (
        test_passes.write,
        ["multicast set 4 1 11 2 12", "mirror set 5 1 group 4", "recirculation set rate 1000000000 delay 10"],
    ),
    "queues": (
        test_queues.write,
        ["queue scheduler 2 bmv2 queues 32", "queue set 2 all rate 100000", "queue scheduler 2 drr queues 8"],
    ),
    "wide": (test_wide.write, ["register write table 1 0x123"]),
    "varbit": (test_varbit.write, []),
    "meters": (
        test_meters.write,
        ["meter set rates all 1000 500 2000 800", "table set kinds 0 0 = member", "table set by_port 0 = pass"],
    ),
}
PROGRAMS |= {name: requests for name, (_, requests) in FRAGMENTS.items()}


@pytest.mark.parametrize(("pipeline", "seed"), [("test", 1), ("p4", 1), ("p4", 2), *((name, 1) for name in PROGRAMS)])
def test_core__survives_random_requests_and_frames(pipeline: str, seed: int) -> None:
    name, words = ("softswitch" if pipeline == "p4" else f"softswitch-{pipeline}"), [f"PIPELINE={pipeline}"]
    if pipeline in PROGRAMS:
        committed = ROOT / f"softswitch/tests/translate/programs/build/{pipeline}.json"
        json = FRAGMENTS[pipeline][0]() if pipeline in FRAGMENTS else committed
        words = [
            f"P4_JSON={json}",
            f"PROGRAM_OBJ={ROOT}/build/obj/{name}-sanitize",
            f"BIN={ROOT}/build/{name}-sanitize",
        ]
    make(*words, "SANITIZE=1", "fuzz")
    command = [f"{ROOT}/build/{name}-sanitize-fuzz", str(seed), "5000", *PROGRAMS.get(pipeline, [])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    stats = dict(line.split() for line in done.stdout.splitlines() if " " in line)
    registers = {"p4": 2, "test": 2, "queues": 1}.get(pipeline, 0)
    assert int(stats["registers_checked"]) == 5000 * 3 * registers
    # else nearly all input was refused
    assert int(stats["clones"]) + sum(int(stats[f"port.{port}.departed"]) for port in (1, 2, 3)) > 100


@pytest.mark.serial  # frames that wait are given up in real time
def test_shell__counts_lateness_answers_requests_and_waits_for_refused_outputs() -> None:
    make("PIPELINE=test", "SANITIZE=1", "shell_test")
    done = subprocess.run([ROOT / "build/softswitch-test-sanitize-shell-test"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
