# SPDX-License-Identifier: MIT
"""The limits of virtual time: a run that exceeds one limit by a little is not valid, with this reason alone."""

import shutil

import pytest

from analysis.judge.analyse import analyse
from analysis.tests.documents import change
from lib.errors import InputError

ECHO_NS = 10_000_000 + 84 * 8 * 20  # RTT, and 84 bytes at 50 Mb/s
LATE_BY_1 = [[0, 999], [1, 1]]
LIMITS = [  # run, document, place of the changed value, value (None: removed), part of the reason ("": valid)
    ("virtual", "switch", "lateness/2", LATE_BY_1, "a frame left the switch 1 ns late"),
    ("virtual", "switch", "lateness/1", LATE_BY_1, "a frame left the switch 1 ns late"),
    ("virtual", "switch", "lateness/3", LATE_BY_1, "a postcard left the switch 1 ns late"),
    ("virtual", "switch", "stats/gap_error_max_ns.2", 2, "2 ns off the link's"),
    ("virtual", "switch", "stats/gap_error_max_ns.2", None, "does not say gap error of port 2"),
    ("virtual", "switch", "stats/real_span_ns.2", 1_000_001_001, "the link's rate was off by -1.00e-06"),
    ("virtual", "switch", "stats/real_span_ns.2", 999_998_998, "the link's rate was off by +1.00e-06"),
    ("virtual", "switch", "stats/arrivals_clamped", 1, "moved to a later time"),
    ("virtual", "switch", "program/executor", "process", "the switch was a process"),
    ("virtual", "switch", "program/executor", None, "does not say the kind of switch"),
    ("virtual", "idle_rtt", "min_ns", ECHO_NS - 1, f"took {ECHO_NS - 1} ns"),
    ("virtual", "idle_rtt", "min_ns", ECHO_NS + 10, ""),  # for reading the clock
    ("virtual", "idle_rtt", "min_ns", ECHO_NS + 11, f"took {ECHO_NS + 11} ns"),
    ("virtual", "environment", "virtual_machine", None, "is of a run in real time"),
    ("virtual_process", "switch", "lateness/1", [[0, 999], [10_239, 1]], "10239 ns late"),
    ("virtual_process", "switch", "lateness/3", [[274_431, 1000]], ""),  # postcards may leave later
    ("virtual_process", "switch", "stats/real_span_ns.2", 1_000_010_001, "the link's rate was off by"),
    ("virtual_process", "idle_rtt", "min_ns", 10_034_000, "took 10034000 ns"),
    ("virtual_process", "switch", "program/executor", "driver", "the switch was a driver"),
    ("two_flows", "environment", "virtual_machine", {}, "is of a run in virtual time"),
]


@pytest.mark.parametrize("run", ["virtual", "virtual_process", "two_flows"])
def test_limits__are_kept_to_the_ns(known_runs, tmp_path, run):
    assert known_runs(run).analysis.reasons == []
    wrong = []
    for number, (of, name, place, value, said) in enumerate(LIMITS):
        if of == run:
            directory = shutil.copytree(known_runs(run).directory, tmp_path / str(number) / "rep-1")
            change(directory, name, place.split("/"), value)
            reasons = analyse(directory).reasons
            if [said in reason for reason in reasons] != [True] * bool(said):
                wrong.append((name, place, value, reasons))
    assert wrong == []


@pytest.mark.parametrize(("old", "new"), [("clock: virtual", "clock: atomic"), ("switch: driver", "switch: barn")])
def test_spec__with_an_unknown_clock_or_switch_is_refused(fresh, old, new):
    path = fresh("virtual") / "spec.yaml"
    path.write_text(path.read_text().replace(f"{old}\n", f"{new}\n"))
    with pytest.raises(InputError, match=new.split(": ")[0]):
        analyse(path.parent)
