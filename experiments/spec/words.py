# SPDX-License-Identifier: MIT
"""The words of a spec and of the groups in its key `groups`, and their errors. A spec without `groups` is one group.

The keys of a group are keys of an experiment, read by the same readers and checked by the same rules: a group has the
run's words with its own in their place. The scope of a key (lib/keys.py) says whether a group has it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from experiments.machine.host import Host
from experiments.spec.keys import KEYS, Spec, validate
from experiments.spec.transfers import KINDS
from lib.errors import BadValue
from lib.keys import BOTH, GROUP

DEFAULTS_OF_GROUPS = tuple(name for name, row in KEYS.items() if row.scope == BOTH)  # the run may give these, too
GROUP_KEYS = tuple(name for name, row in KEYS.items() if row.scope in (GROUP, BOTH) and name != "finite_cc")


@dataclass(frozen=True)
class Words:
    """`spec` has the values of the `given` words and the defaults of all others. `number` is a group's place in
    `groups`; None: the words of the whole spec.
    """

    spec: Spec
    given: Mapping[str, object]
    number: int | None = None

    @property
    def kinds(self) -> list[str]:
        return self.spec.traffic.split(",")

    @property
    def finite_kinds(self) -> list[str]:
        return [kind for kind in self.kinds if kind in KINDS]

    @property
    def cc(self) -> str | None:
        """The congestion control of CC, if it names a single one."""
        return self.spec.cc[0].cc if len(self.spec.cc) == 1 else None

    @property
    def rtts_ns(self) -> tuple[int, ...]:
        """The RTTs of RTTS; or the least and the largest."""
        spec = self.spec
        return tuple(rtt.ns for rtt in spec.rtts or ()) or (spec.rtt.ns, spec.rtt.ns + spec.rtt_spread.ns)

    def clock(self, host: Host) -> str:
        return self.spec.clock or host.clock


class Error(NamedTuple):
    """`key` may be several, flows/cc: the first given one is wrong; if none is given, the last. `problem` continues
    KEY=VALUE. `group` is the number of the group that has the value.
    """

    key: str
    problem: str
    group: int | None = None


class Errors:
    """The first error of each key: of the run, or of a group in `groups`, as groups[0].rtt."""

    def __init__(self, run: Words, found: dict[str, BadValue]) -> None:
        self.run, self.found = run, found

    def _is_wrong(self, keys: Collection[str], group: int | None) -> bool:
        """Whether one of the keys is wrong, of this group or of the run; of any group if `group` is None."""
        names = (name.rpartition(".") for name in self.found)
        wrong = [(of, key) for of, _, key in names if key in keys]
        if group is None or not self.run.spec.groups:
            return bool(wrong)
        return any(of == f"groups[{group}]" or (not of and KEYS[key].scope != GROUP) for of, key in wrong)

    def add(self, error: Error, needs: Mapping[str, Collection[str]]) -> None:
        """Adds an error, unless a key is wrong that the error's key `needs`."""
        of_run, listed, keys = self.run.given, self.run.spec.groups, error.key.split("/")
        given = listed[error.group] if listed and error.group is not None else of_run
        key = next((key for key in keys if key in given), keys[-1])
        if self._is_wrong(needs.get(key, ()), error.group):
            return
        if given is of_run or (key in DEFAULTS_OF_GROUPS and key not in given and key in of_run):
            value = of_run.get(key, KEYS[key].default or None)
            self.found.setdefault(key, BadValue(key.upper(), value, error.problem))
        else:
            name = f"groups[{error.group}].{key}"
            self.found.setdefault(name, BadValue(name, given.get(key), error.problem))

    def in_order(self) -> list[BadValue]:
        """The keys of the run in the order of their table, then all others."""
        known = [key for key in KEYS if key in self.found]
        return [self.found[key] for key in [*known, *sorted(self.found.keys() - known)]]


def groups(run: Words, errors: Errors) -> list[Words]:
    """The words of each group in `groups`; without it those of the spec."""
    if run.spec.groups is None:
        return [run]
    result = []
    for number, values in enumerate(run.spec.groups):
        spec, found = validate({key: value for key, value in values.items() if key in GROUP_KEYS})
        errors.found |= {(name := f"groups[{number}].{key}"): error._replace(key=name) for key, error in found.items()}
        own = {key: getattr(spec, key) for key in GROUP_KEYS if key in values or key not in DEFAULTS_OF_GROUPS}
        result.append(Words(run.spec.model_copy(update=own | {"finite_cc": None, "program_cc": None}), values, number))
    return result
