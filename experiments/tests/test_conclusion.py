# SPDX-License-Identifier: MIT
"""The results on the terminal: of a valid run, of several repetitions, and of a run that is not valid."""

import copy
from pathlib import Path
from typing import Any

import pytest

from analysis import in_words
from analysis.derive import derive
from analysis.tests import simulate
from experiments.conclusion import Outcome, lines, outcome, show_all, show_one


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The summary of a simulated repetition with two algorithms."""
    directory = tmp_path_factory.mktemp("conclusion") / "rep-1"
    simulate.write_run(directory, simulate.Scenario(flows=3, ccs=("cubic", "reno")))
    return derive(directory)[0]


def altered(summary: dict[str, Any], **values: Any) -> dict[str, Any]:
    """A copy with other values; a dictionary replaces only its own keys."""
    changed = copy.deepcopy(summary)
    for name, value in values.items():
        changed[name] = changed[name] | value if isinstance(value, dict) else value
    return changed


def of(summary: dict[str, Any], number: int = 1) -> Outcome:
    return outcome(number, summary, Path(f"results/x/rep-{number}"))


def test_sentence__says_who_used_how_much_with_which_buffer(recorded: dict[str, Any]) -> None:
    full = altered(recorded, utilization={"mean": 1.0}, queue_nonempty_fraction=1.0)
    assert in_words.sentence(full).startswith("2 Cubic and 1 Reno flows used 100 % of ")
    assert in_words.sentence(full).endswith("; the queue never emptied.")
    nearly = altered(recorded, utilization={"mean": 0.999999}, queue_nonempty_fraction=0.9875)
    assert "used 99.99 % of" in in_words.sentence(nearly)
    assert in_words.sentence(nearly).endswith("; 1.2 % of packets found the queue empty.")
    hardly = nearly | {"queue_nonempty_fraction": 0.003}
    assert in_words.sentence(hardly).endswith("; 100 % of packets found the queue empty.")
    one = altered(full, spec={"groups": [{"cc": "bbr", "flows": 1}], "buffer_given": "250kB", "buffer_packets": 165})
    assert in_words.sentence(one).startswith("1 BBR flow used 100 % of")
    assert "with a buffer of 250 kB (165 packets)" in in_words.sentence(one)
    program = one | {"spec": one["spec"] | {"groups": [], "program": {"cc": "reno"}}}
    assert in_words.sentence(program).startswith("The user's programs used 100 % of")


def test_shares__are_those_of_the_flows_by_algorithm(recorded: dict[str, Any]) -> None:
    shares = in_words.shares(recorded)
    assert [(share.cc, share.flows) for share in shares] == [("cubic", 2), ("reno", 1)]
    rates = [flow["goodput_bps"] for flow in recorded["flows"]]
    assert shares[1].goodput_bps == rates[2 if recorded["flows"][2]["cc"] == "reno" else 1]
    assert shares[1].fraction == pytest.approx(shares[1].goodput_bps / sum(rates))
    said = "\n".join(lines([of(recorded)]))
    assert "  Cubic        " in said
    assert "  Reno         " in said
    assert " ms median, " in said


def test_repetitions__come_as_mean_and_range_first_and_each_with_its_number(
    recorded: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    later = altered(recorded, utilization={"mean": 0.5}, queue_delay_ns={"p50": 3e6})
    first = altered(recorded, utilization={"mean": 0.7}, queue_delay_ns={"p50": 1e6})
    show_all([of(later, 2), of(first, 1)])
    output = capsys.readouterr().out.splitlines()
    assert output[0] == "2 repetitions, mean (least to most):"
    assert output[1].startswith("  utilization  60.00 % (50.00 to 70.00) mean, ")
    assert output[2].startswith("  delay        2 ms (1 to 3) median, ")
    assert any(line.startswith("Repetition 2, the median: ") for line in output)
    each = [line.split()[:2] for line in output if line.endswith("report.html")]
    assert each == [["1", "70.00"], ["2", "50.00"]]


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


@pytest.mark.parametrize(
    ("changes", "holds", "does_not"),
    [
        (
            {"reasons": ["fidelity: late"], "fidelity": {"lateness_us": {"p99": 700.0}}},
            "All ",
            "The timing does not hold",
        ),
        ({"reasons": ["delay: long"], "fidelity": {"lateness_us": {"p99": 700.0}}}, "All ", "The timing does not hold"),
        ({"reasons": ["ledger: lost"], "ledger": {"postcards_stored": 7}}, "7 of ", ""),
        ({"reasons": ["ledger: lost"], "ledger": {"postcards_missing": 7}}, "lower bounds", ""),
        ({"reasons": ["ledger: lost"], "ledger": {"tcp_events_lost": 7}}, "Trace records are missing", ""),
        ({"reasons": ["ledger: hid"], "ledger": {"tcp_events_hidden": 7}}, "Trace records are missing", ""),
        ({"reasons": ["traffic: ended early"]}, "Nothing is known to hold", ""),
        ({"reasons": ["fidelity: x", "switch.json: damaged"]}, "Nothing is known to hold", ""),
        ({"reasons": ["fidelity: x"], "fidelity": {"clock_steps": 1}}, "Nothing is known to hold", ""),
        ({"reasons": ["ledger: x"], "ledger": {"postcards_sent": None}}, "Nothing is known to hold", ""),
    ],
)
def test_run_that_is_not_valid__says_first_what_still_holds(
    recorded: dict[str, Any], capsys: pytest.CaptureFixture[str], changes: dict[str, Any], holds: str, does_not: str
) -> None:
    show_one(of(altered(recorded, valid=False, **changes)), "1 s")
    said = capsys.readouterr().err
    assert said.startswith("NOT VALID")
    assert holds in said
    assert does_not in said
    assert 0 < said.index(holds) < said.index(f"because: {changes['reasons'][0]}")
    if "lower bounds" in said or "Nothing" in said:
        assert "depths, delays" not in said
