# SPDX-License-Identifier: MIT
"""The spec of a sweep: a YAML file (values are text, as in specs of experiments), overridden by words after make.
Reports every error at once. plan.py derives the experiments.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from experiments.spec.keys import KEYS, MOST_REPS, MOST_SEED, Spec, load_yaml
from lib import units
from lib.errors import BadValue, SpecError
from lib.keys import SWEEP, Keys, Model, field, parse
from lib.values import number, whole_number
from runs.quantities import CRITERIA
from runs.thinned import KEEP

# A sweep has one value of these keys; the values of its runs are derived.
OF_THE_SWEEP = tuple(name for name, row in KEYS.items() if row.scope == SWEEP)
VERSIONS = {"real": "CLOCK=real", "ns3": "SWITCH=ns3", "smoke": "SMOKE=1"}  # the word that selects a version
IMPLIES = {"real": "clock", "ns3": "switch"}  # version -> the key that the version sets: the sweep's name leaves it out
VERSION_SECTIONS = ("keep", "reps", "seed", "base", "grid", "points", "headlines", "optional_cc", "search")
LIKE_SECTIONS = (*VERSION_SECTIONS, *VERSIONS)
SECTIONS = ("name", "about", "like", *LIKE_SECTIONS)
HEADLINES = ("reps", "points")
PARTS = {"like", "base", "grid", "points"}  # a spec with one of these keys is a sweep's, never an experiment's
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
UNSET = "none"  # this value unsets the key, which then has its default
MOST_POINTS = 100_000
SHORT = {"duration": "100rtt", "warmup": "60rtt"}  # if the file has no short version of its own

Point = dict[str, Any]  # values are text, except the value of `groups`


def _of_buffers(text: str) -> str:
    units.parse(text, ("bdp", "packets"))
    return text


class Search(Keys):
    """The least buffer for which `criterion` is at least `least`, between `low` and `high`, to `width`."""

    criterion: str = field("what the buffer must keep", default=None, values=tuple(CRITERIA))
    least: float = field("the least value of the criterion, 0 to 1", lambda text: float(number("0", "1")(text)), None)
    low: str = field("the smallest buffer: 3p or 0.01bdp", _of_buffers, None)
    high: str = field("the largest buffer: 250p or 1.5bdp", _of_buffers, None)
    width: float = field(
        "of the interval, relative to its lower end", lambda text: float(number("0.001", "1")(text)), "0.1"
    )
    most_reps: int = field("of one buffer, if repetitions disagree", whole_number(1, MOST_REPS), "10")
    edge_reps: int = field("of the two buffers that bound the result", whole_number(1, MOST_REPS), "1")


def _names(content: object) -> frozenset[str]:
    if not isinstance(content, list) or not all(isinstance(name, str) and name for name in content):
        raise ValueError("is no list of congestion controls; allowed: [bbr2]")
    return frozenset(content)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("is not text; allowed: a sentence")
    return value


class SingleValues(Keys):
    """The keys of a sweep's spec that are no parts."""

    about: str | None = field("a sentence", _text)
    keep: str = field("files that stay of each valid run", default=KEEP[0], values=KEEP)
    reps: int = field("repetitions of each point", whole_number(1, MOST_REPS), "1")
    seed: int = field("the seed of the sweep", whole_number(0, MOST_SEED), "1")
    optional_cc: frozenset[str] | None = field("points with one of these are left out if the kernel lacks it", _names)


class Headlines(NamedTuple):
    """Points that get more repetitions than others. A point is a headline if it has every value of one of `points`."""

    reps: int
    points: tuple[Point, ...]


NO_HEADLINES = Headlines(0, ())


@dataclass(frozen=True)
class Sweep:
    """A sweep with every value set; the parameters of its experiments are text."""

    name: str
    about: str
    keep: str
    reps: int
    seed: int
    base: Point
    points: tuple[Point, ...]  # each as changes to `base`
    search: Search | None
    file: str
    note: str = ""  # for the user: a short version was made, or points were left out
    optional_cc: frozenset[str] = frozenset()  # points with one of these are left out if the kernel lacks it
    headlines: Headlines = NO_HEADLINES

    @property
    def most_reps(self) -> int:
        """The largest number of repetitions of a point."""
        return max(self.reps, self.headlines.reps)

    def limited(self, most_reps: int) -> Sweep:
        """The sweep with at most `most_reps` repetitions of each point."""
        headlines = self.headlines._replace(reps=min(self.headlines.reps, most_reps))
        return replace(self, reps=min(self.reps, most_reps), headlines=headlines)

    def repetitions(self, point: Point) -> int:
        """The number of repetitions of a point."""
        return self.most_reps if any(self._is(point, each) for each in self.headlines.points) else self.reps

    def _is(self, point: Point, headline: Point) -> bool:
        given = {**self.base, **point}
        return all(given.get(key) == value for key, value in headline.items())

    def given(self, point: Point) -> dict[str, object]:
        """The parameters of an experiment at `point`."""
        return {key: value for key, value in {**self.base, **point}.items() if value != UNSET}


def read(file: Path, words: Mapping[str, object], smoke: bool) -> Sweep:
    """The sweep of `file`. Its values override those of the file that its key `like` names; `words` (keys in lower
    case) override both. CLOCK=real selects the file's real-time version, and SWITCH=ns3 its version for ns-3,
    if the file has them. `smoke` selects the short version. Raises SpecError.
    """
    content = load_yaml(file)
    if content and not content.keys() & PARTS and content.keys() <= set(KEYS):
        problem = f"is the spec of one experiment; allowed: make experiment SPEC={file}, or the spec of a sweep"
        raise SpecError([BadValue("SPEC", str(file), problem)])
    errors: list[BadValue] = []

    where = str(file)

    def wrong(key: str, value: object, problem: str, origin: str | None = None) -> None:
        errors.append(BadValue(key, value, problem, where if origin is None else origin))

    _check_keys(content, SECTIONS, "", wrong)
    if "like" in content:
        content = _merged(_like(content["like"], file, wrong), content)
        where = f"{file} (like {content['like']})"
    selected = {name: _selects(words, *VERSIONS[name].lower().split("=")) for name in IMPLIES}
    versions = [name for name, asked in selected.items() if asked and name in content] + ["smoke"] * smoke
    note = ""
    for version in versions:
        if version == "smoke" and version not in content:
            content, note = _shortened(content)
        else:
            content = _overridden(content, version, wrong)
    changed = dict(words)
    whole = {key: changed.pop(key) for key in ("keep", "reps", "seed", "name") if key in changed}
    base = _parameters(content.get("base", {}), "base", wrong)
    grid = _grid(content.get("grid", {}), "grid", wrong)
    listed = _points(content.get("points", [{}]), "points", wrong)
    count = len(listed) * math.prod(map(len, grid.values()))
    if count > MOST_POINTS:
        wrong("grid", None, f"makes {count} points; allowed: {MOST_POINTS}")
    points = tuple(
        {**point, **dict(zip(grid, values, strict=True))}
        for point in (listed if count <= MOST_POINTS else ())
        for values in itertools.product(*grid.values())
    )
    for key in sorted(set(grid) & {key for point in listed for key in point}):
        wrong(key, None, "is in grid and in points; allowed: one of them")
    varied = set(grid) | {key for point in listed for key in point}
    for key, value in changed.items():
        if key not in KEYS or key in OF_THE_SWEEP:
            wrong(key.upper(), None, _unknown(key), "")
        elif key in varied:
            wrong(key.upper(), value, "is varied by the sweep; allowed: keys that the sweep does not vary", "")
        else:
            base[key] = str(value)
    search = _search(content["search"], {*base, *varied}, wrong) if "search" in content else None
    given = {key: value for key, value in (content | whole).items() if key in SingleValues.model_fields}
    single = _part(SingleValues, given, "", wrong) or SingleValues()
    sweep = Sweep(
        name=_name(whole.get("name"), [content.get("name"), *versions], changed, whole.get("seed"), wrong),
        about=single.about or "",
        keep=single.keep,
        reps=single.reps,
        seed=single.seed,
        base=base,
        points=points,
        search=search,
        file=str(file),
        note=note,
        optional_cc=single.optional_cc or frozenset(),
        headlines=NO_HEADLINES if "reps" in whole else _headlines(content.get("headlines"), wrong),
    )
    for each in sweep.headlines.points:
        if not any(sweep._is(point, each) for point in points):
            shown = ", ".join(f"{key}: {value}" for key, value in each.items())
            wrong("headlines.points", f"{{{shown}}}", "is no point; allowed: values of base, grid and points")
    if search and sweep.headlines.points:
        wrong("headlines", None, "has no meaning in a search; allowed: search.edge_reps")
    if search:
        most = max(search.most_reps, search.edge_reps, sweep.reps)
        sweep = replace(sweep, search=search.model_copy(update={"most_reps": most}))
    if errors:
        raise SpecError(errors)
    return sweep


def has_version(file: Path, version: str) -> bool:
    """Whether the file, or the file that its `like` names, has this version. Raises SpecError."""
    content = load_yaml(file)
    if "like" in content:
        content = _merged(_like(content["like"], file, lambda *_: None), content)
    return version in content


def _selects(words: Mapping[str, object], key: str, value: str) -> bool:
    return str(words.get(key, "")).strip().lower() == value


def _like(given: object, file: Path, wrong: Any) -> dict[str, Any]:
    """The file named by `like`: a relative path below the spec's directory."""
    path = Path(given if isinstance(given, str) else "..")
    if path.is_absolute() or ".." in path.parts or not str(path).isprintable():
        wrong("like", given, "is not a file below the spec's own directory; allowed: a path such as common/link.yaml")
        return {}
    content = load_yaml(file.parent / path)
    _check_keys(content, LIKE_SECTIONS, f"{path}: ", wrong)
    return content


def _overridden(content: dict[str, Any], version: str, wrong: Any) -> dict[str, Any]:
    """The content, overridden by its section for a version."""
    instead = content.get(version)
    if not isinstance(instead, dict):
        problem = f"is missing, or no mapping: this sweep has no {version} version; leave {VERSIONS[version]} out"
        wrong(version, None, problem)
        return content
    _check_keys(instead, VERSION_SECTIONS, f"{version}.", wrong)
    return _merged({key: value for key, value in content.items() if key != "headlines"}, instead)


def _shortened(content: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """A short version of a file that has none: one repetition of the first and last values, and short runs. Values of
    a wrong form stay, so that the usual checks name them.
    """
    short = {key: value for key, value in content.items() if key != "headlines"} | {"reps": "1"}
    for name in ("grid", "points"):
        lists = content.get(name)
        if isinstance(lists, dict):
            short[name] = _ends_of(lists)
        elif isinstance(lists, list):
            short[name] = [_ends_of(point) if isinstance(point, dict) else point for point in _ends(lists)]
    varied = {key for part in (content.get("grid"), *_listed(content)) if isinstance(part, dict) for key in part}
    base = content.get("base", {})
    if isinstance(base, dict):
        short["base"] = {**base, **{key: value for key, value in SHORT.items() if key not in varied}}
    length = " and ".join(f"{key.upper()}={value}" for key, value in SHORT.items() if key not in varied)
    what = "1 repetition of the first and the last value of each list"
    return short, f"the file has no short version (smoke:), so this one is made: {what}{f', {length}' * bool(length)}"


def _listed(content: dict[str, Any]) -> list[Any]:
    points = content.get("points")
    return points if isinstance(points, list) else []


def _ends_of(lists: dict[str, Any]) -> dict[str, Any]:
    return {key: values if key == "groups" else _ends(values) for key, values in lists.items()}


def _ends(values: Any) -> Any:
    """The first and the last value of a list."""
    return [values[0], values[-1]] if isinstance(values, list) and len(values) > 2 else values


def _merged(content: dict[str, Any], instead: dict[str, Any]) -> dict[str, Any]:
    """`content`, overridden by `instead`: mappings key by key, everything else as a whole."""
    merged = dict(content)
    for key, value in instead.items():
        both = isinstance(value, dict) and isinstance(content.get(key), dict)
        merged[key] = _merged(content[key], value) if both else value
    return merged


def _check_keys(content: Mapping[str, object], allowed: tuple[str, ...], where: str, wrong: Any) -> None:
    for key in content:
        if key not in allowed:
            wrong(f"{where}{key}", None, f"is not a part of a sweep; allowed: {', '.join(allowed)}")


def _unknown(key: str) -> str:
    if key in OF_THE_SWEEP:
        return "is derived for each run of a sweep; allowed: name, reps and seed at the top of the spec"
    return Spec.unknown_key(key)


def _parameters(content: object, where: str, wrong: Any) -> Point:
    """Parameters of an experiment, as text. Their values are checked with each point."""
    if not isinstance(content, dict):
        wrong(where, None, "is not a mapping of parameters; allowed: lines such as `rtt: 10ms`")
        return {}
    parameters = {}
    for key, value in content.items():
        if key not in KEYS or key in OF_THE_SWEEP:
            wrong(f"{where}.{key}", None, _unknown(key))
        elif key != "groups" and (not isinstance(value, str) or not value):
            wrong(f"{where}.{key}", None, "has no single value; allowed: one value, or several in grid or points")
        else:
            parameters[key] = value
    return parameters


def _grid(content: object, where: str, wrong: Any) -> dict[str, list[str]]:
    if not isinstance(content, dict):
        wrong(where, None, "is not a mapping; allowed: lines such as `flows: [1, 4]`")
        return {}
    grid: dict[str, list[str]] = {}
    for key, values in content.items():
        if key not in KEYS or key in OF_THE_SWEEP:
            wrong(f"{where}.{key}", None, _unknown(key))
        elif not isinstance(values, list) or not values or not all(isinstance(v, str) and v for v in values):
            problem = "is not a list of values; allowed: [1, 4], a mix in quotes (['cubic:8,bbr:8'])"
            wrong(f"{where}.{key}", None, problem)
        elif len(set(values)) < len(values):
            wrong(f"{where}.{key}", None, "has a value twice; allowed: each once")
        else:
            grid[key] = values
    return grid


def _points(content: object, where: str, wrong: Any) -> list[Point]:
    if not isinstance(content, list) or not content:
        wrong(where, None, "is not a list; allowed: lines such as `- {cc: reno, flows: 1}`")
        return [{}]
    return [point for number, each in enumerate(content, 1) for point in _point(each, f"{where}[{number}]", wrong)]


def _point(content: object, where: str, wrong: Any) -> list[Point]:
    """A point; with lists of values, a point for each combination of them."""
    if not isinstance(content, dict):
        return [_parameters(content, where, wrong)]
    lists = {key: value for key, value in content.items() if isinstance(value, list) and key != "groups"}
    several = _grid(lists, where, wrong)
    single = _parameters({key: value for key, value in content.items() if key not in lists}, where, wrong)
    if (count := math.prod(map(len, several.values()))) > MOST_POINTS:
        wrong(where, None, f"makes {count} points; allowed: {MOST_POINTS}")
        return [single]
    combined = (single | dict(zip(several, values, strict=True)) for values in itertools.product(*several.values()))
    return [{key: point[key] for key in content if key in point} for point in combined]


def _headlines(content: object, wrong: Any) -> Headlines:
    if content is None:
        return NO_HEADLINES
    if not isinstance(content, dict) or set(content) != {*HEADLINES}:
        wrong("headlines", None, "is not complete; allowed: {reps: 10, points: [{flows: 4}]}")
        return NO_HEADLINES
    reps = _part(SingleValues, {"reps": content["reps"]}, "headlines", wrong) or SingleValues()
    return Headlines(reps.reps, tuple(_points(content["points"], "headlines.points", wrong)))


def _search(content: object, given: set[str], wrong: Any) -> Search | None:
    search = _part(Search, content, "search", wrong)
    if "buf" in given:
        wrong("buf", None, "is the result of the search; allowed: no buf in base, grid and points, or after make")
    return search


def _part(model: type[Model], content: object, where: str, wrong: Any) -> Model | None:
    """A part of the spec; wrong keys have their defaults. None if a key without default is wrong."""
    if not isinstance(content, dict):
        wrong(where, None, f"is not a mapping; allowed: {', '.join(model.model_fields)}")
        return None
    part, errors = parse(model, content)
    for key, error in errors.items():
        wrong(f"{where}.{key}".lstrip("."), error.value, error.problem)
    return part


def _name(given: object, of_file: list[object], changed: Mapping[str, object], seed: object, wrong: Any) -> str:
    """The directory's name: NAME, or the `name` in the file with versions and changes, so that different sweeps
    have different directories. A key that a version implies is left out. Without NAME, the name of a short version ends
    with "-smoke", by which figures recognise the short version.
    """
    if given is None:
        implied = {key for version, key in IMPLIES.items() if version in of_file[1:]}
        said = {key: value for key, value in changed.items() if key not in implied}
        changes = [f"{key}-{value}" for key, value in sorted({**said, **({"seed": seed} if seed else {})}.items())]
        short = [word for word in of_file[1:] if word == "smoke"]
        full = [word for word in of_file[1:] if word != "smoke"]
        words = [str(word or "") for word in (of_file[0], *full, *changes, *short)]
        given = "-".join([words[0], *(re.sub(r"[^A-Za-z0-9.]+", "-", word).lower() for word in words[1:])])
    if not isinstance(given, str) or not NAME.fullmatch(given) or given in ("latest", "runs"):
        wrong("name", given, "cannot name a directory; allowed: 1 to 64 letters, digits, '.', '_' and '-' (NAME=...)")
        return "sweep"
    return given
