# SPDX-License-Identifier: MIT
"""The limits of virtual time: a run that exceeds one limit by a little is not valid, with this reason alone."""

import pytest

from analysis.analyse import analyse
from analysis.tests.documents import change

ECHO_NS = 10_000_000 + 84 * 8 * 20  # RTT, and 84 bytes at 50 Mb/s


@pytest.mark.parametrize("name", ["virtual", "virtual_process"])
def test_virtual_time__that_is_just_exact_enough_is_valid(known_runs, name):
    assert known_runs(name).analysis.reasons == []


@pytest.mark.parametrize(
    ("name", "path", "value", "said"),
    [
        ("switch", ("lateness", "2"), [[0, 999], [1, 1]], "a frame left the switch 1 ns late"),
        ("switch", ("lateness", "1"), [[0, 999], [1, 1]], "a frame left the switch 1 ns late"),
        ("switch", ("lateness", "3"), [[0, 999], [1, 1]], "a postcard left the switch 1 ns late"),
        ("switch", ("stats", "gap_error_max_ns.2"), 2, "2 ns off the link's; allowed in virtual time is 1 ns"),
        ("switch", ("stats", "gap_error_max_ns.2"), None, "does not say gap error of port 2"),
        ("switch", ("stats", "real_span_ns.2"), 1_000_001_001, "the link's rate was off by -1.00e-06"),
        ("switch", ("stats", "real_span_ns.2"), 999_998_998, "the link's rate was off by +1.00e-06"),
        ("switch", ("stats", "arrivals_clamped"), 1, "moved to a later time; in virtual time none may be"),
        ("switch", ("program", "executor"), "process", "the switch was a process, spec.yaml asks for a driver"),
        ("switch", ("program", "executor"), None, "does not say the kind of switch, spec.yaml asks for a driver"),
        ("idle_rtt", ("min_ns",), ECHO_NS - 1, f"took {ECHO_NS - 1} ns; allowed in virtual time are {ECHO_NS} ns"),
        ("idle_rtt", ("min_ns",), ECHO_NS + 11, "to the ns, and up to 10 ns more for reading the clock"),
        ("environment", ("virtual_machine",), None, "is of a run in real time, spec.yaml asks for virtual"),
    ],
)
def test_driver__is_exact(fresh, name, path, value, said):
    directory = fresh("virtual")
    change(directory, name, path, value)
    (reason,) = analyse(directory).reasons
    assert said in reason
    assert "\n" not in reason


def test_driver__idle_rtt_may_include_clock_readings(fresh):
    directory = fresh("virtual")
    change(directory, "idle_rtt", ("min_ns",), ECHO_NS + 10)
    assert analyse(directory).reasons == []


@pytest.mark.parametrize(
    ("name", "path", "value", "said"),
    [
        ("switch", ("lateness", "1"), [[0, 999], [10_239, 1]], "10239 ns late; allowed in virtual time are 10000 ns"),
        ("switch", ("stats", "real_span_ns.2"), 1_000_010_001, "allowed in virtual time is 1e-05"),
        ("idle_rtt", ("min_ns",), 10_034_000, "up to 20000 ns more for the switch's lateness"),
        ("switch", ("program", "executor"), "driver", "the switch was a driver, spec.yaml asks for a process"),
    ],
)
def test_process__is_late_by_microseconds(fresh, name, path, value, said):
    directory = fresh("virtual_process")
    change(directory, name, path, value)
    (reason,) = analyse(directory).reasons
    assert said in reason


def test_process__postcards_may_leave_later(fresh):
    directory = fresh("virtual_process")
    change(directory, "switch", ("lateness", "3"), [[274_431, 1000]])
    a = analyse(directory)
    assert a.reasons == []
    assert (a.fidelity["lateness_max_ns"], a.fidelity["postcard_lateness_max_ns"]) == (9_983, 274_431)


def test_real_time__has_its_own_limits(fresh):
    directory = fresh("two_flows")
    change(directory, "environment", ("virtual_machine",), {})
    (reason,) = analyse(directory).reasons
    assert reason.startswith("environment.json: is of a run in virtual time")


@pytest.mark.parametrize(("key", "value"), [("clock", "atomic"), ("switch", "barn")])
def test_spec__with_an_unknown_clock_or_switch_is_not_valid(fresh, key, value):
    directory = fresh("virtual")
    text = (directory / "spec.yaml").read_text()
    old = {"clock": "virtual", "switch": "driver"}[key]
    (directory / "spec.yaml").write_text(text.replace(f"{key}: {old}\n", f"{key}: {value}\n"))
    assert any(f"spec.yaml: {key} '{value}' is none of" in reason for reason in analyse(directory).reasons)
