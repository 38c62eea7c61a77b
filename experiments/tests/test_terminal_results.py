# SPDX-License-Identifier: MIT
"""The results on the terminal: of a valid run, and of runs that are not valid."""

import copy
from pathlib import Path
from typing import Any

import pytest

from analysis.replay.derive import derive
from analysis.tests import simulate
from analysis.tests.undrawn import leave_out
from analysis.wording import verdict_text
from experiments.run.terminal_results import Outcome, lines, outcome, show_all, show_one


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The summary of a simulated repetition with two algorithms."""
    directory = tmp_path_factory.mktemp("conclusion") / "rep-1"
    simulate.write_run(directory, simulate.Scenario(flows=3, ccs=("cubic", "reno")))
    with pytest.MonkeyPatch.context() as patched:
        leave_out(patched.setattr)
        return derive(directory)[0]


def altered(summary: dict[str, Any], **values: Any) -> dict[str, Any]:
    """A copy with other values; a dictionary replaces only its own keys."""
    changed = copy.deepcopy(summary)
    for name, value in values.items():
        changed[name] = changed[name] | value if isinstance(value, dict) else value
    return changed


def of(summary: dict[str, Any], number: int = 1) -> Outcome:
    return outcome(number, summary, Path(f"results/x/rep-{number}"))


def test_sentence__never_says_of_a_part_that_it_is_all(recorded: dict[str, Any]) -> None:
    nearly = altered(recorded, utilization={"mean": 0.999999}, queue_nonempty_fraction=0.9875)
    assert verdict_text.sentence(nearly).startswith("2 Cubic and 1 Reno flows used 99.99 % of ")
    assert verdict_text.sentence(nearly).endswith("; 1.2 % of packets found the queue empty.")


def test_shares__are_those_of_the_flows_by_algorithm(recorded: dict[str, Any]) -> None:
    shares = verdict_text.shares(recorded)
    assert [(share.cc, share.flows) for share in shares] == [("cubic", 2), ("reno", 1)]
    (of_reno,) = [flow["goodput_bps"] for flow in recorded["flows"] if flow["cc"] == "reno"]
    assert shares[1].goodput_bps == of_reno
    assert shares[1].fraction == pytest.approx(of_reno / sum(flow["goodput_bps"] for flow in recorded["flows"]))
    assert "  Reno         " in "\n".join(lines([of(recorded)]))


def test_repetitions__that_are_not_valid_are_named_and_not_counted(
    recorded: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    bad = altered(recorded, valid=False, reasons=["fidelity: late"], utilization={"mean": 0.1})
    show_all([of(altered(recorded, utilization={"mean": 0.7}), 1), of(bad, 2)])
    said = capsys.readouterr()
    assert said.out.startswith("Repetition 1, the only valid one:")
    assert "  utilization  70.00 % mean" in said.out
    assert said.out.rstrip().endswith("rep-2/report.html  NOT VALID")
    assert said.err.startswith("NOT VALID, repetition 2")


def test_run_that_is_not_valid__says_first_what_still_holds(
    recorded: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    late = {"fidelity": {"lateness_us": {"p99": 700.0}}}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"reasons": ["fidelity: late"], **late}, "All "),
        ({"reasons": ["delay: long"], **late}, "All "),
        ({"reasons": ["ledger: lost"], "ledger": {"postcards_stored": 7}}, "7 of "),
        ({"reasons": ["ledger: lost"], "ledger": {"postcards_missing": 7}}, "lower bounds"),
        ({"reasons": ["ledger: lost"], "ledger": {"tcp_events_lost": 7}}, "Trace records are missing"),
        ({"reasons": ["ledger: hid"], "ledger": {"tcp_events_hidden": 7}}, "Trace records are missing"),
        ({"reasons": ["traffic: ended early"]}, "Nothing is known to hold"),
        ({"reasons": ["fidelity: x", "switch.json: damaged"]}, "Nothing is known to hold"),
        ({"reasons": ["fidelity: x"], "fidelity": {"clock_steps": 1}}, "Nothing is known to hold"),
        ({"reasons": ["ledger: x"], "ledger": {"postcards_sent": None}}, "Nothing is known to hold"),
    ]
    for changes, holds in cases:
        show_one(of(altered(recorded, valid=False, **changes)), "1 s")
        said = capsys.readouterr().err
        assert said.startswith("NOT VALID")
        assert 0 < said.index(holds) < said.index(f"because: {changes['reasons'][0]}")
        assert ("The timing does not hold" in said) == (holds == "All ")
        assert "depths, delays" not in said or holds not in ("lower bounds", "Nothing is known to hold")
