# SPDX-License-Identifier: MIT
"""The search for the least buffer, on functions whose answer is known."""

from collections.abc import Callable

from experiments.sweep.search import LeastBuffer, least_buffer, next_steps, steps_at_most
from experiments.sweep.spec import Search

SEARCH = Search(criterion="nonempty", least=0.99, low="3p", high="249p", width=0.1, most_reps=8)
LOW, HIGH = 3, 249
Measure = Callable[[int, int], float | None]  # packets, repetition


def searched(
    measure: Measure, reps: int = 2, search: Search = SEARCH
) -> tuple[LeastBuffer, dict[int, list[float | None]]]:
    """The result, and all measurements of the search."""
    measured: dict[int, list[float | None]] = {}
    for _ in range(100):
        steps = next_steps(measured, LOW, HIGH, reps, search)
        if not steps:
            return least_buffer(measured, LOW, HIGH, reps, search), measured
        for step in steps:
            values = measured.setdefault(step.packets, [])
            assert len(values) < step.repetitions
            values += [measure(step.packets, number) for number in range(len(values), step.repetitions)]
    raise AssertionError("the search does not end")


def bounds(result: LeastBuffer) -> tuple[int, int]:
    assert result.low is not None
    assert result.high is not None
    return result.low, result.high


def test_search__of_a_sharp_edge_is_as_narrow_as_asked_and_contains_the_edge() -> None:
    for least in range(LOW + 1, HIGH + 1, 7):
        result, measured = searched(lambda packets, _, least=least: 1.0 if packets >= least else 0.5)  # type: ignore[misc]
        low, high = bounds(result)
        assert low < least <= high
        assert high - low <= max(1, 0.1 * low)
        assert result.note == ""
        assert len(measured) <= steps_at_most(LOW, HIGH, SEARCH.width) + 1
        assert result.runs == 2 * len(measured)


def test_search__for_an_edge_outside_of_its_range_measures_both_ends_and_says_so() -> None:
    assert searched(lambda *_: 1.0)[0] == LeastBuffer(None, LOW, 4, "at most 3, the least that was tried")
    assert searched(lambda *_: 0.2)[0] == LeastBuffer(HIGH, None, 4, "more than 249, the most that was tried")


def test_search__whose_repetitions_never_agree_gives_the_zone_of_disagreement() -> None:
    """Between 40 and 80 packets every other repetition succeeds, so more repetitions never decide."""

    def measure(packets: int, repetition: int) -> float:
        return 0.5 if packets < 40 else 1.0 if packets > 80 else 0.98 + 0.02 * (repetition % 2)

    result, _ = searched(measure)
    low, high = bounds(result)
    assert 35 <= low < 40
    assert 80 < high <= 89
    assert "repetitions disagree at" in result.note


def test_search__reports_results_that_are_not_monotone() -> None:
    result, _ = searched(lambda packets, _: 1.0 if packets < 10 else 0.5)
    assert (result.low, result.high) == (None, None)
    assert result.note == "not monotone: 3 packets are enough and 249 are not"


def test_search__goes_on_with_runs_that_are_not_valid() -> None:
    result, _ = searched(lambda packets, number: None if number == 1 else 1.0 if packets >= 100 else 0.5)
    low, high = bounds(result)
    assert low < 100 <= high
    assert "runs are not valid" in result.note
    nothing, _ = searched(lambda *_: None)
    assert (nothing.low, nothing.high, nothing.runs) == (None, None, 0)


EDGES = SEARCH.model_copy(update={"edge_reps": 5, "most_reps": 5})


def test_search__measures_both_bounds_with_more_repetitions_and_no_other_buffer() -> None:
    result, measured = searched(lambda packets, _: 1.0 if packets >= 60 else 0.5, 1, EDGES)
    repeated = {packets for packets, values in measured.items() if len(values) == 5}
    assert repeated == {result.low, result.high}
    assert {len(values) for packets, values in measured.items() if packets not in repeated} == {1}
    ends, _ = searched(lambda *_: 1.0, 1, EDGES)
    assert ends == LeastBuffer(None, LOW, 6, "at most 3, the least that was tried")


def test_search__whose_first_seed_was_lucky_takes_the_next_buffer_that_more_seeds_confirm() -> None:
    """With 50 to 59 packets only the first repetition succeeds."""

    def measure(packets: int, repetition: int) -> float:
        return 1.0 if packets >= 60 or (packets >= 50 and repetition == 0) else 0.5

    once, _ = searched(measure, 1, SEARCH.model_copy(update={"most_reps": 1}))
    assert bounds(once)[1] < 60
    result, measured = searched(measure, 1, EDGES)
    low, high = bounds(result)
    assert high >= 60
    assert len(measured[high]) == 5
    assert "repetitions disagree" in result.note or low >= 50
