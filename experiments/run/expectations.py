# SPDX-License-Identifier: MIT
"""EXPECT: what runs must show, as in "delay_p99<20ms, utilization>=0.98, share.bbr=0.4..0.6". Each is judged on its
own, and the results are lines for people and JUnit's XML for programs.

Of one repetition the value decides. Of several the 95 % interval of their mean: an expectation holds or fails if the
whole interval lies on one side of the bound, and is undecided else. Repetitions that are not valid do not count.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lib import files, units
from lib.errors import BadValue, RunError, SpecError
from lib.exit_codes import Exit
from lib.keys import Keys, field
from lib.terminal import say
from runs.quantities import BY_NAME, COUNT, QUANTITIES, Quantity

if TYPE_CHECKING:
    from analysis.arithmetic.statistics import Interval
    from model.experiment import Experiment

FEWEST = 3  # valid repetitions before a run ends early, because all is decided
NONE = " "  # without EXPECT
SHARE = "share."  # of an algorithm in the goodput
_EXPECTATION = re.compile(r"\s*([A-Za-z][\w.]*)\s*(<=|>=|<|>|=)\s*(\S+?)\s*")
_AFFIXES = re.compile(r"^queue_|_(ns|us|bps|packets|mean|index)$")
FORM = "NAME<VALUE, also <=, >, >= and NAME=LEAST..MOST, several with commas: delay_p99<20ms, utilization>=0.98"


def is_measured(quantity: Quantity) -> bool:
    """Whether it is a number of a run's summary, and no setting."""
    place = quantity.path.partition(".")[0]
    return quantity.kind in (int, float) and bool(quantity.about) and place not in ("", "spec")


def _measured() -> dict[str, Quantity]:
    """The quantities that runs measure, by their names, and by the names without queue_ and unit."""
    numbers = [each for each in QUANTITIES if is_measured(each)]
    short = {_AFFIXES.sub("", _AFFIXES.sub("", each.name)): each for each in reversed(numbers)}
    return short | {each.name: each for each in numbers}


MEASURED = _measured()


class Result(StrEnum):
    HOLDS, FAILS, UNDECIDED = "holds", "fails", "undecided"


class Expectation(NamedTuple):
    """Values of the quantity, or of an algorithm's share, from `least` to `most`; without the ends if `is_open`."""

    text: str
    name: str
    least: float
    most: float
    is_open: bool

    def of(self, summary: Mapping[str, Any]) -> float | None:
        """The value of a repetition; None if unknown."""
        if self.name.startswith(SHARE):
            from analysis.wording import verdict_text

            shares = {share.cc: share.fraction for share in verdict_text.shares(summary)}
            return shares.get(self.name.removeprefix(SHARE))
        value = MEASURED[self.name].of(summary)
        return None if value is None else float(value)

    def judge(self, mean: Interval | None) -> Result:
        """The result for the mean of some repetitions; None: no valid repetition has a value."""
        if mean is None or math.isnan(mean.value):
            return Result.UNDECIDED
        inside = [self._has(end) for end in mean.ends]
        if all(inside):
            return Result.HOLDS
        low, high = mean.ends
        is_outside = high < self.least or low > self.most or (self.is_open and (high <= self.least or low >= self.most))
        return Result.FAILS if is_outside else Result.UNDECIDED

    def _has(self, value: float) -> bool:
        return self.least < value < self.most if self.is_open else self.least <= value <= self.most


class Judged(NamedTuple):
    """An expectation of the runs `where` (a point of a sweep; "" of an experiment)."""

    where: str
    expectation: Expectation
    mean: Interval | None
    result: Result

    @property
    def line(self) -> str:
        if self.mean is None:
            found = "no valid run has a value"
        else:
            quantity = MEASURED.get(self.expectation.name)
            unit = quantity.unit if quantity else BY_NAME["utilization_mean"].unit
            low, high = (unit.text(end) for end in self.mean.ends)
            found = unit.text(self.mean.value) + (f" ({low} to {high})" if low != high else "")
            found += f", {self.mean.runs} run{'s' * (self.mean.runs != 1)}"
        return f"{self.where + ': ' if self.where else ''}{self.expectation.text} {self.result}: {found}"


def read(value: object) -> tuple[Expectation, ...]:
    """Raises ValueError; its message continues a sentence that begins with the value."""
    parts = [part for part in str(value).split(",") if part.strip()]
    if not parts and value != NONE:
        raise ValueError(f"expects nothing; allowed: {FORM}")
    return tuple(_read(part) for part in parts)


def _read(text: str) -> Expectation:
    match = _EXPECTATION.fullmatch(text)
    if not match:
        raise ValueError(f"has {text.strip()!r}, which is no expectation; allowed: {FORM}")
    name, relation, bound = match.groups()
    if not name.startswith(SHARE) and name not in MEASURED:
        known = ", ".join(sorted({min(_names(each), key=len) for each in MEASURED.values()}))
        raise ValueError(f"has {name!r}, which no run measures; allowed: {known}, {SHARE}CC")
    low, dots, high = bound.partition("..")
    if (relation == "=") != bool(dots):
        raise ValueError(f"has {text.strip()!r}; allowed: {FORM}")
    values = [_value(name, each) for each in ((low, high) if dots else (bound,))]
    least = values[0] if relation[0] in "=>" else -math.inf
    most = values[-1] if relation[0] in "=<" else math.inf
    if least > most:
        raise ValueError(f"has {text.strip()!r}, whose ends are in the wrong order; allowed: LEAST..MOST")
    return Expectation(f"{name}{relation}{bound}", name, least, most, relation in "<>")


def _names(quantity: Quantity) -> list[str]:
    return [name for name, each in MEASURED.items() if each is quantity]


def _value(name: str, text: str) -> float:
    """A bound in the unit of the summary: 20ms, 10mbit, 98%, 0.98, 100p or 100."""
    quantity = MEASURED.get(name)
    dimension = {"s": "time", "b/s": "rate"}.get(quantity.unit.base if quantity else "")
    if dimension:
        try:
            amount = units.parse(text, (dimension,)).amount
        except ValueError as error:
            raise ValueError(f"has {name} with {text}, which {error}") from None
        return float(amount) / 1e9 * quantity.unit.base_over if dimension == "time" else float(amount)  # type: ignore[union-attr]
    number, unit = re.fullmatch(r"(.*?)(%|p)?", text, re.DOTALL).groups()  # type: ignore[union-attr]
    is_count = quantity is not None and quantity.unit == COUNT
    if (unit == "%" and is_count) or (unit == "p" and not is_count):
        kind = "a number" if is_count else "a share or a ratio"
        raise ValueError(f"has {name} with {text}, and {name} is {kind}; allowed: {'100' if is_count else '0.98, 98%'}")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"has {name} with {text}, which is no number; allowed: 0.98, 98%, 100")
    return value / 100 if unit == "%" else value


class Expecting(Keys):
    """The keys of the commands that may expect something."""

    expect: tuple[Expectation, ...] = field(
        "what the runs must show, else the exit status is 3 (docs/expect.md): delay_p99<20ms, utilization>=0.98, "
        "share.bbr=0.4..0.6", read, default=NONE,
    )  # fmt: skip
    junit: Path | None = field("with EXPECT: a file for the results, JUnit's XML")


NOTHING = Expecting()


def begin(expecting: Expecting, specs: Iterable[Experiment]) -> None:
    """Refuses what no run could decide, and removes the results of an earlier run: after an error none are better than
    old ones. Raises SpecError, RunError.
    """
    errors = []
    algorithms = sorted({group.cc for spec in specs for group in spec.with_settings if group.cc})
    for each in expecting.expect:
        if each.name.startswith(SHARE) and each.name.removeprefix(SHARE) not in algorithms:
            allowed = ", ".join(f"{SHARE}{cc}" for cc in algorithms) or "no share, as no flow names its algorithm"
            errors.append(BadValue("EXPECT", each.text, f"names an algorithm that no flow has; allowed: {allowed}"))
    if expecting.junit and not expecting.expect:
        errors.append(BadValue("JUNIT", str(expecting.junit), "has no results without EXPECT; give EXPECT, too"))
    if errors:
        raise SpecError(errors)
    if expecting.junit:
        try:
            expecting.junit.unlink(missing_ok=True)
            with files.replacing(expecting.junit):
                pass
            expecting.junit.unlink()
        except OSError as error:
            raise RunError(f"JUNIT={expecting.junit}: {error.strerror}; give a file in a writable directory") from None


def judge(expect: Sequence[Expectation], summaries: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Judged]:
    """Every expectation of every group of valid repetitions, by the group's name."""
    if not expect:
        return []
    from analysis.arithmetic.statistics import mean_interval  # SciPy: not for a command that only reads its words

    judged = []
    for where, valid in summaries.items():
        for each in expect:
            values = [value for summary in valid if (value := each.of(summary)) is not None]
            mean = mean_interval(values)
            judged.append(Judged(where, each, mean, each.judge(mean)))
    return judged


def is_decided(judged: Iterable[Judged]) -> bool:
    """Whether enough valid repetitions say all, so that no more are needed."""
    return all(each.result is not Result.UNDECIDED and each.mean and each.mean.runs >= FEWEST for each in judged)


def report(judged: Sequence[Judged], name: str, junit: Path | None) -> Exit:
    """Says each result, and writes JUnit's file. The exit status: FAILED if one fails, DOUBTFUL if one is undecided.
    Raises RunError.
    """
    for each in judged:
        say(f"  expected     {each.line}")
    if junit:
        try:
            with files.replacing(junit) as file:
                file.write(_junit(judged, name))
        except OSError as error:
            raise RunError(f"JUNIT={junit}: {error.strerror}; give a file in a writable directory") from None
    results = {each.result for each in judged}
    return Exit.FAILED if Result.FAILS in results else Exit.DOUBTFUL if Result.UNDECIDED in results else Exit.DONE


def _junit(judged: Sequence[Judged], name: str) -> bytes:
    counts = {result: sum(each.result is result for each in judged) for result in Result}
    suite = ET.Element(
        "testsuite", name=name, tests=str(len(judged)), failures=str(counts[Result.FAILS]),
        errors=str(counts[Result.UNDECIDED]),
    )  # fmt: skip
    for each in judged:
        case = ET.SubElement(suite, "testcase", classname=each.where or name, name=each.expectation.text)
        if each.result is not Result.HOLDS:
            ET.SubElement(case, "failure" if each.result is Result.FAILS else "error", message=each.line)
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suite) + b"\n"
