# SPDX-License-Identifier: MIT
"""The command `compare`. It prints the settings in which runs differ from the first and their numbers side by side,
with each difference and, if both runs have several repetitions, its interval. It draws their queues in one figure. A
sweep stands for its points, each with its repetitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import polars

from analysis.arithmetic.statistics import difference_interval, mean_interval
from analysis.read import complete_run
from analysis.report import setting_differences
from analysis.report.setting_differences import Difference
from analysis.results.distributions import NAME as DISTRIBUTIONS
from analysis.wording import verdict_text
from experiments.run.terminal_results import FRACTION, Outcome, median, outcome
from lib import files, parquet
from lib.errors import InputError
from lib.exit_codes import Exit
from lib.keys import Keys, Wrong, field
from lib.terminal import complain, counted, one_line, say
from lib.words import PATHS
from model.experiment import Experiment
from runs import contents, record, run_table, stored_sweep, verdict
from runs.names import REPETITION_NAME, SPEC_FILE, SUMMARY
from runs.quantities import LINES, SINGLE, Quantity, Unit

if TYPE_CHECKING:
    import numpy as np

KINDS = (".png", ".svg", ".pdf")
MOST_LETTERS = 40  # of a run's name in the figure
MOST = len(ascii_uppercase)  # each run is a letter
DELAY_BIN_NS, MOST_BINS = 10_000, 1 << 20  # of delays


def _paths(value: object) -> tuple[Path, ...]:
    """Raises ValueError."""
    paths = tuple(Path(part.strip()) for part in str(value).split(",") if part.strip())
    if not paths:
        raise ValueError("names no run; allowed: results/b, or several: results/b,results/c")
    return paths


class Asked(Keys):
    run: Path = field("a run, a repetition of one, or a sweep: results/latest, results/latest/rep-1", default=None)
    with_: tuple[Path, ...] | None = field(
        "the run or sweep to compare RUN with, shown as B, or several with commas (default: the run before RUN by "
        "name, shown as A)", _paths, values=PATHS,
    )  # fmt: skip
    output: Path | None = field(
        "the figure, a file whose name ends with .png, .svg or .pdf (default: in figures/ beside RUN)"
    )

    def check(self, wrong: Wrong) -> None:
        if self.output and self.output.suffix not in KINDS:
            wrong("output", f"is no figure; allowed: a name that ends with {', '.join(KINDS)}")


class Compared(NamedTuple):
    """A run: its name, and the directory, summary and numbers of each repetition that counts. Repetitions that are not
    valid count only if none is valid.
    """

    name: str
    repetitions: list[Path]
    summaries: list[dict[str, Any]]
    outcomes: list[Outcome]
    not_valid: list[Outcome]

    @property
    def experiment(self) -> Experiment:
        return verdict.experiment(self.summaries[0])


def run(asked: Asked) -> int:
    """Prints the comparison and draws the figure. Returns the exit status, DOUBTFUL also without a figure. Raises
    InputError.
    """
    paths = (asked.run, *asked.with_) if asked.with_ else _last_two(asked.run)
    for number, path in enumerate(paths):
        if path.resolve() in {other.resolve() for other in paths[:number]}:
            raise InputError(f"{path}: is given twice; allowed: another run, or another repetition of the same run")
    compared = [each for path in paths for each in _of_path(path)]
    if not 1 < len(compared) <= MOST:
        raise InputError(
            f"{', '.join(map(str, paths))}: {len(compared)} runs and points of sweeps; allowed: 2 to {MOST}"
        )
    for each in compared:
        for invalid in each.not_valid:
            complain(f"{invalid.report.parent}: NOT VALID: {invalid.reasons[0]}")
        if each.not_valid and not any(result.valid for result in each.outcomes):
            complain(f"{each.name}: no repetition is valid, so its numbers are no measurement")
    for line in lines(*compared):
        say(line)
    is_drawn = _draw(compared, asked.output, _default_output(paths))
    return Exit.DONE if is_drawn and not any(each.not_valid for each in compared) else Exit.DOUBTFUL


def _last_two(run: Path) -> tuple[Path, Path]:
    """The run before `run` in its directory, by name, and `run`. Raises InputError."""
    directory = run.resolve()
    siblings = directory.parent.iterdir() if directory.is_dir() else ()
    earlier = [path for path in siblings if path.name < directory.name and any(path.glob(f"rep-*/{SUMMARY}"))]
    if not earlier:
        raise InputError(
            f"{run}: no run comes before this run by name in {directory.parent}; give the other run with WITH="
        )
    return max(earlier), run


def _of_path(path: Path) -> list[Compared]:
    """A run or a repetition, or the points of a sweep, in the order of their parameters. Raises InputError."""
    if not contents.is_sweep(path):
        return [read(path)]
    sweep = stored_sweep.read(path)
    points: dict[str, list[Path]] = {}
    for row in sweep.rows:
        if row["verdict"] != stored_sweep.MISSING:
            words = {key: sweep.value(row, key) for key in sweep.parameters} or {"point": row["point"]}
            name = " ".join(f"{key}={value}" for key, value in words.items())
            points.setdefault(name, []).append(sweep.directory / row["directory"])
    return [_read(f"{path} {name}", repetitions) for name, repetitions in points.items()]


def read(path: Path) -> Compared:
    """Reads the analysed repetitions of a run, or a single repetition. Raises InputError."""
    is_one = (path / SPEC_FILE).is_file() or REPETITION_NAME.fullmatch(path.name)
    candidates = [path] if is_one else sorted(path.glob("rep-*"), key=lambda each: (len(each.name), each.name))
    repetitions = [each for each in candidates if (each / SUMMARY).exists() or record.damage(each, derived=[SUMMARY])]
    if not repetitions:
        what = (
            "is not analysed; bufferscope replay does it"
            if candidates
            else "is not a run; allowed: the path of a run, such as results/latest"
        )
        raise InputError(f"{path}: {what}")
    return _read(str(path), repetitions)


def _read(name: str, repetitions: list[Path]) -> Compared:
    read_all = []
    for number, repetition in enumerate(repetitions, 1):
        try:
            summary = verdict.read(repetition)
        except (OSError, ValueError) as error:
            raise InputError(f"{repetition}: {verdict.unread(error)}") from None
        read_all.append((repetition, summary, outcome(number, summary, repetition)))
    counting = [each for each in read_all if each[2].valid] or read_all
    directories, summaries, outcomes = map(list, zip(*counting, strict=True))
    not_valid = [result for *_, result in read_all if not result.valid]
    return Compared(name, directories, summaries, outcomes, not_valid)


def lines(*compared: Compared) -> list[str]:
    """A sentence for each run, the differences of settings from the first, then the table."""
    first, *others = compared
    letters = ascii_uppercase[: len(compared)]
    texts = [
        f"{letter}: {each.name}, {counted(len(each.outcomes), 'repetition')}: {median(each.outcomes).sentence}"
        for letter, each in zip(letters, compared, strict=True)
    ]
    for letter, other in zip(letters[1:], others, strict=True):
        about = _about_settings(setting_differences.differences(first.experiment, other.experiment))
        about += _about_versions(first, other)
        texts += about if len(others) == 1 else [f"{letter} and A: {line[0].lower()}{line[1:]}" for line in about]
    rows: list[tuple[str, ...]] = [("", "A", *(f for letter in letters[1:] for f in (letter, f"{letter} - A")))]
    left_out = SINGLE if _has_marks(compared) else (*SINGLE, "marks")
    for line, quantities in LINES.items():
        for quantity in () if line in left_out else quantities:
            rows += _rows(_title(line, quantity), quantity.unit, _values(compared, quantity.name))
    shares = {share.cc: share.name for each in compared for outcome in each.outcomes for share in outcome.shares}
    for cc, name in shares.items() if len(shares) > 1 else ():
        rows += _rows(f"{name}'s share of the goodput", FRACTION, _values(compared, f"share.{cc}"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    texts += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    repetitions = [len(each.outcomes) for each in compared]
    if max(repetitions) > 1:
        texts.append(
            "In parentheses: 95 % Student's t intervals over repetitions; for B - A, Welch's t intervals. An interval "
            "with impossible values, such as less than 0 drops, comes from too few repetitions."
        )
    if min(repetitions) == 1:
        texts.append("A single repetition has no interval: another seed may differ by as much. REPS=3 gives intervals.")
    return texts


def _about_settings(differing: list[Difference]) -> list[str]:
    if not differing:
        return ["Settings: the same in both."]
    parts = [f"{each.name} {each.first} | {each.second}" for each in differing]
    if len(differing) == 1:
        return [f"One setting differs: {parts[0]}"]
    texts = [f"{len(differing)} settings differ, so no single one explains the numbers: {'; '.join(parts)}"]
    if differing[0].name == "CLOCK":
        texts.append("The clocks differ: real time adds the lateness of frames (docs/virtual-time.md).")
    return texts


def _about_versions(first: Compared, second: Compared) -> list[str]:
    """A line if the versions of bufferscope differ, and a line if the kernels differ."""
    texts = []
    commits = [run_table.of_run(each.repetitions[0]).commit for each in (first, second)]
    kernels = [each.summaries[0].get("lab", {}).get("kernel") for each in (first, second)]
    for what, values, length in (("versions of bufferscope", commits, 10), ("kernels", kernels, 40)):
        if None not in values and values[0] != values[1]:
            texts.append(f"The {what} differ: {str(values[0])[:length]} | {str(values[1])[:length]}")
    return texts


def _has_marks(compared: Sequence[Compared]) -> bool:
    return any(outcome.values.get("marks") for each in compared for outcome in each.outcomes)


def _title(line: str, quantity: Quantity) -> str:
    """A number's name. For the queue's depth the unit moves from the number's label to the name."""
    label = quantity.label.strip().removesuffix(" packets").removesuffix(", in the queue")
    return f"{line} (packets) {label}" if line == "queue" else f"{line} {label}".strip()


def _values(compared: Sequence[Compared], name: str) -> list[list[float]]:
    """The number of each repetition, for each run. Without a value for marks, an outcome counts as one with 0 marks."""
    known = {"marks": 0.0}
    return [
        [value for outcome in each.outcomes if (value := outcome.values.get(name, known.get(name))) is not None]
        for each in compared
    ]


def _rows(name: str, unit: Unit, values: list[list[float]]) -> list[tuple[str, ...]]:
    """The line of a number in the table; none if the first run or all others lack the number."""
    differences = [difference_interval(values[0], other) for other in values[1:]]
    if not any(differences):
        return []

    def shown(value: float) -> str:
        return unit.text(value).removesuffix(unit.symbol)

    def cell(interval: Any, of_difference: bool = False) -> str:
        if interval is None:
            return "-"
        sign = "+" if of_difference and interval.value > 0 else ""
        points = of_difference and unit.symbol == " %"
        text = f"{sign}{shown(interval.value)}{' percentage points' if points else unit.symbol}"
        if interval.low is None or interval.low == interval.high:
            return text
        return f"{text} ({shown(interval.low)} to {shown(interval.high)})"

    cells = [cell(mean_interval(values[0]))]
    for other, difference in zip(values[1:], differences, strict=True):
        cells += [cell(mean_interval(other)), cell(difference, of_difference=True)]
    return [(name, *cells)]


def _default_output(paths: tuple[Path, ...]) -> Path:
    """In figures/ beside RUN, named after the first two runs."""
    mine, other = (path.resolve() for path in (paths * 2)[:2])
    run = mine.parent if REPETITION_NAME.fullmatch(mine.name) else mine

    def name(path: Path) -> str:
        return f"{path.parent.name}-{path.name}" if REPETITION_NAME.fullmatch(path.name) else path.name

    return (
        run.parent
        / "figures"
        / f"compare-{name(mine)}-{name(other)}{f'-and-{len(paths) - 2}' if paths[2:] else ''}.png"
    )


def _draw(compared: Sequence[Compared], asked: Path | None, default: Path) -> bool:
    """Writes the figure. If a run's depths cannot be read, says so and returns false: the numbers are printed already.
    Raises InputError if the figure cannot be written.
    """
    output = asked or default
    try:
        runs = [_queue(letter, each) for letter, each in zip(ascii_uppercase, compared, strict=False)]
    except InputError as error:
        complain(f"no figure: {error}")
        return False
    from matplotlib import rc_context

    from analysis.figures import queues_compared
    from analysis.figures.common import plain
    from analysis.figures.drawing import PNG_DPI, STYLE

    valid = not any(each.not_valid for each in compared)
    both = zip(ascii_uppercase, compared, strict=False)
    buffers = ";  ".join(f"{letter}: {verdict_text.buffer_text(each.experiment)}" for letter, each in both)
    facts = {"text": buffers, "valid": valid}
    try:
        with (
            rc_context(cast(Any, STYLE)),
            nullcontext() if asked else files.claimed(default.parent, make=True) as within,
            files.replacing(asked or default.name, within) as file,
        ):
            figure = queues_compared.draw(plain({"facts": facts, "runs": runs}))
            figure.savefig(file, format=output.suffix[1:], dpi=PNG_DPI)
    except OSError as error:
        raise InputError(f"{output}: {one_line(error)}; choose another place with OUTPUT=") from None
    say(f"{'both' if len(compared) == 2 else 'all'} queues -> {output}")
    return True


def _queue(letter: str, each: Compared) -> dict[str, Any]:
    from analysis.figures import queues_compared

    is_one = REPETITION_NAME.fullmatch(Path(each.name).name)
    name = "/".join(Path(each.name).parts[-2 if is_one else -1 :])
    name = f"{letter} {name if len(name) <= MOST_LETTERS else '...' + name[-MOST_LETTERS:]}"
    depths = [_histogram(path) for path in each.repetitions]
    delays = [found for path in each.repetitions if (found := _delays(path))]
    return queues_compared.prepare(name, each.experiment.buffer_packets, depths, delays)


def _delays(repetition: Path) -> tuple[np.ndarray, np.ndarray] | None:
    """Queueing delays in ms, in bins of DELAY_BIN_NS, and how many packets had each; None without a table of packets.
    Raises InputError.
    """
    import numpy as np

    path = repetition / "joined.parquet"
    if not path.is_file():
        return None
    complete_run.check(repetition, derived=[path.name])
    counts = np.zeros(0, dtype=np.int64)
    try:
        for part in parquet.slabs(path, ["sojourn_ns", "dropped"]):
            delays = part.filter(~polars.col("dropped"))["sojourn_ns"].drop_nulls().to_numpy()
            more = np.bincount(np.clip(delays // DELAY_BIN_NS, 0, MOST_BINS))
            longer, shorter = (more, counts) if len(more) > len(counts) else (counts, more)
            counts = longer.copy()
            counts[: len(shorter)] += shorter
    except (OSError, polars.exceptions.PolarsError) as error:
        raise InputError(f"{path}: cannot be read: {one_line(error)}") from None
    bins = np.flatnonzero(counts)
    return ((bins + 1) * (DELAY_BIN_NS / 1e6), counts[bins]) if len(bins) else None


def _histogram(repetition: Path) -> tuple[np.ndarray, np.ndarray]:
    """Queue depths found at arrivals, and how many packets found each. Raises InputError."""
    path = repetition / DISTRIBUTIONS
    complete_run.check(repetition, derived=[DISTRIBUTIONS])
    try:
        table = parquet.read(path)
        rows = table.filter(polars.col("what") == "queue_depth_packets").sort("value")
        return rows["value"].to_numpy(), rows["count"].to_numpy()
    except (OSError, polars.exceptions.PolarsError) as error:
        raise InputError(f"{path}: cannot be read: {one_line(error)}") from None
