# SPDX-License-Identifier: MIT
"""The key `groups` of a spec file: a list of groups, each with its own keys. A spec without `groups` is one group.

The keys of a group are keys of an experiment, read by the same readers and checked by the same rules: an entry is the
run's spec with the group's keys in place of the run's. The scope of a key (lib/keys.py) says whether a group has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from experiments.spec import paths
from experiments.spec.keys import KEYS, Spec, validate
from experiments.spec.transfers import OPEN_LOOP, PROGRAM, TRAFFIC, kinds
from lib.errors import BadValue
from lib.keys import BOTH, GROUP, Wrong
from lib.words import unknown

DEFAULTS_OF_GROUPS = tuple(name for name, row in KEYS.items() if row.scope == BOTH)  # the run may give these, too
GROUP_KEYS = tuple(name for name, row in KEYS.items() if row.scope in (GROUP, BOTH) and name != "finite_cc")


@dataclass(frozen=True)
class Entry:
    """One of the groups of a spec, or the whole traffic of a spec without `groups`.

    `errors` are the errors of the entry's keys; `wrong` adds one. `number` is the group's place in the file.
    """

    spec: Spec
    given: Mapping[str, object]
    errors: dict[str, BadValue]
    wrong: Wrong
    number: int = 0
    is_listed: bool = False  # in `groups`

    @property
    def is_tcp(self) -> bool:
        return self.spec.traffic != OPEN_LOOP

    @property
    def has_ack_delay(self) -> bool:
        """Whether ACK_DELAY is the group's, not the run's."""
        return self.is_listed and "ack_delay" in self.given

    @property
    def rtts_ns(self) -> tuple[int, int]:
        """The least and the largest RTT."""
        rtts = paths.rtts_ns(self.spec)
        if rtts:
            return min(rtts), max(rtts)
        return self.spec.rtt.ns, self.spec.rtt.ns + self.spec.rtt_spread.ns


def entries(spec: Spec, given: Mapping[str, object], errors: dict[str, BadValue], wrong: Wrong) -> list[Entry]:
    """The groups of the spec, or the spec itself. An entry has the errors of its group; `collect` adds them to the
    run's.
    """
    if spec.groups is None:
        return [Entry(spec, given, errors, wrong)]
    for key in sorted(given.keys() & {*GROUP_KEYS, "finite_cc"} - {*DEFAULTS_OF_GROUPS}):
        name = "cc" if key == "finite_cc" else key
        wrong(key, f"must be in the groups, not beside them; allowed: {name} in groups[0], groups[1], ...")
    return [_entry(spec, number, values) for number, values in enumerate(spec.groups)]


def _entry(run: Spec, number: int, values: Mapping[str, str]) -> Entry:
    of_group, problems = validate({key: value for key, value in values.items() if key in GROUP_KEYS})
    errors = {key: error._replace(key=f"groups[{number}].{key}") for key, error in problems.items()}
    inherited = {key: getattr(run, key) for key in DEFAULTS_OF_GROUPS if key not in values}
    spec = run.model_copy(update={key: getattr(of_group, key) for key in GROUP_KEYS} | inherited | {"finite_cc": None})

    def wrong(key: str, problem: str) -> None:
        value = values.get(key)
        errors.setdefault(key, BadValue(f"groups[{number}].{key}", value, problem))

    for key in values:
        if key not in GROUP_KEYS and key in KEYS and key not in ("finite_cc", "groups"):
            wrong(key, "is of the whole run; allowed: outside of groups")
        elif key not in GROUP_KEYS:
            wrong(key, f"is no key of a group; {unknown(key.upper(), map(str.upper, GROUP_KEYS))}")
    if "traffic" not in errors and len(kinds(spec.traffic)) > 1:
        wrong("traffic", f"names several kinds; allowed: one of {', '.join(TRAFFIC)}; use one group for each")
    elif "traffic" not in errors and spec.traffic == PROGRAM:
        wrong("traffic", "cannot be in a group; allowed: TRAFFIC=program without groups")
    elif "traffic" not in errors and spec.traffic == OPEN_LOOP:
        for key in DEFAULTS_OF_GROUPS:
            if key in values:
                wrong(key, "has no meaning with TRAFFIC=open-loop; allowed: with TCP flows only")
    if "cc" not in errors and any(group.flows is not None for group in spec.cc):
        wrong("cc", "gives numbers of flows; allowed: one name, and the number in flows")
    return Entry(spec, values, errors, wrong, number, is_listed=True)


def traffic(entries: list[Entry]) -> str:
    """The kinds of all entries, in the order of TRAFFIC."""
    used = {kind for entry in entries for kind in kinds(entry.spec.traffic)}
    return ",".join(kind for kind in TRAFFIC if kind in used)


def collect(entries: list[Entry], errors: dict[str, BadValue]) -> None:
    """Adds the errors of groups to those of the run."""
    for entry in entries:
        if entry.is_listed:
            errors |= {error.key: error for error in entry.errors.values()}
