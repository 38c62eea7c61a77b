# SPDX-License-Identifier: MIT
"""The parameters of an experiment as a user gives them, each checked by itself. Rules between keys are in resolve.py.

The same keys come from `KEY=VALUE` words (make, any case), long options (`--rtt-spread 2ms`) and YAML files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, ConfigDict, ValidationError

from controlplane.policy import WATCHED_MODES
from controlplane.targets import RUN_TARGETS
from experiments import congestion, offloads, pacing, programs, tcp_options
from experiments.cc_parameters import read_parameters
from experiments.paths import MOST_ACCESS_LINKS, MOST_PATHS, read_rtts
from experiments.traffic import MAX_FLOWS
from experiments.transfers import read_traffic
from hosts.traffic.draw_words import Drawn, read_distribution
from hosts.traffic.open_loop import ARRIVALS, ARRIVALS_FORM, MOST_FLOW_PACKETS, is_sizes, read_arrivals
from hosts.traffic.transfers import MOST_USERS, PATH_OF, THINK_FROM
from lib import strict_yaml, values
from lib.errors import BadValue, SpecError
from lib.values import SIX_DECIMALS, choice, number, optional, quantity, whole_number

SPEC_VERSION = 1
STREAMS_PER_PROCESS = 128  # iperf3's own limit
MOST_GROUPS = 64
GENERATORS = ("iperf3", "epoll")


class GivenGroup(NamedTuple):
    """A group as CC gives it. `flows` is None if FLOWS gives the number. `source`: a user's own algorithm."""

    cc: str
    flows: int | None
    source: congestion.Source | None


def _groups(value: object) -> tuple[GivenGroup, ...]:
    form = "one congestion control (cubic, ./mycc.c), or several with their flows (cubic:8,bbr:8)"
    words = [word.strip() for word in value.split(",")] if isinstance(value, str) else []
    groups = []
    for word in words:
        match = re.fullmatch(r"(.+?)(?::([0-9]{1,9}))?", word)
        given = match[1] if match else ""
        source = congestion.read(given) if congestion.is_path(given) else None
        name = source.name if source else given.lower()
        if not match or not congestion.NAME.fullmatch(name):
            raise ValueError(f"cannot be read at {word!r}; allowed: {form}" if word else f"is empty; allowed: {form}")
        groups.append(GivenGroup(name, int(match[2]) if match[2] else None, source))
    if not groups:
        raise ValueError(f"is not text; allowed: {form}")
    if len(groups) > 1 and any(group.flows is None for group in groups):
        raise ValueError("names several without a number of flows for each; allowed: cubic:8,bbr:8")
    if any(group.flows == 0 for group in groups):
        raise ValueError("has a group of zero flows; allowed: 1 or more of each, as in cubic:8,bbr:8")
    names = [group.cc for group in groups]
    if len(set(names)) < len(names):
        raise ValueError("names a congestion control twice; allowed: each once, with its flows")
    return tuple(groups)


def _listed(value: object) -> tuple[dict[str, str], ...]:
    """The groups of a file, each a mapping of text. Their keys are checked in groups.py."""
    form = "allowed: only in a file (SPEC=...), a list of lines such as `- {cc: cubic, flows: 20, rtt: 20ms}`"
    if not isinstance(value, list) or not value:
        raise ValueError(f"is not a list of groups; {form}")
    if len(value) > MOST_GROUPS:
        raise ValueError(f"has {len(value)} groups; allowed: 1 to {MOST_GROUPS}")
    for place, group in enumerate(value):
        if not isinstance(group, dict) or not group or not all(isinstance(text, str) for text in group.values()):
            raise ValueError(f"is not a mapping of keys to single values at groups[{place}]; {form}")
    return tuple(dict(group) for group in value)


def _sizes(value: object) -> str | Drawn:
    """SIZES: a word for open-loop packets, a distribution for finite flows."""
    if str(value).startswith("bursts") and not is_sizes(value):
        raise ValueError(
            f"is not a length of flows that send bursts; allowed: bursts:1p to bursts:{MOST_FLOW_PACKETS}p"
        )
    return str(value) if is_sizes(value) else read_distribution("bytes", "packets")(value)


def _arrivals(value: object) -> str:
    if read_arrivals(value) is None:
        raise ValueError(f"is not a kind of arrivals; allowed: {', '.join((*ARRIVALS, ARRIVALS_FORM))}")
    return str(value)


def _cc(value: object) -> str:
    if isinstance(value, str) and congestion.is_path(value):
        raise ValueError(
            "is a file; allowed: a name, as in cubic, or the file as CC, which finite flows have without FINITE_CC"
        )
    if not isinstance(value, str) or not congestion.NAME.fullmatch(value.lower()):
        raise ValueError("is not the name of a congestion control; allowed: one, as in cubic")
    return value.lower()


def _name(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", value):
        raise ValueError(
            "cannot name a directory; allowed: 1 to 64 letters, digits, '.', '_' and '-', the first a letter or digit"
        )
    return value


def _version(value: object) -> int:
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,9}", str(value)) or int(str(value)) < 1:
        raise ValueError(f"is not a version; allowed: 1 to {SPEC_VERSION}")
    if int(str(value)) > SPEC_VERSION:
        raise ValueError(f"is newer than this bufferscope, which reads up to {SPEC_VERSION}: update bufferscope")
    return int(str(value))


Read = BeforeValidator
_FLOWS_WHY = "as many client ports are reserved"
_RATE_WHY = "below, a packet of 1500 bytes takes over 0.19 s; above, this machine's time stamps are too coarse"
_RTT_WHY = "below, the switch's own lateness is larger"
_MTU_WHY = "bytes; every IPv4 host must accept 576, and jumbo frames end at 9000"
_RTT = quantity("time", low="100us", high="10s", why=_RTT_WHY)
_BUFFER = quantity("bdp", "packets", "bytes", "time", positive=True)


class Spec(tcp_options.TcpKeys, offloads.OffloadKeys, pacing.PacingKeys, programs.ProgramKeys):
    """The parameters as given, read but not resolved. The defaults are those of `make experiment`."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, arbitrary_types_allowed=True)

    spec_version: Annotated[int, Read(_version)] = SPEC_VERSION
    cc: Annotated[Any, Read(_groups)] = "cubic"
    cc_parameters: Annotated[Any, Read(optional(read_parameters))] = None
    flows: Annotated[int | None, Read(optional(whole_number(1, MAX_FLOWS, _FLOWS_WHY)))] = None
    rate: Annotated[Any, Read(quantity("rate", low="64kbit", high="100gbit", why=_RATE_WHY))] = "200mbit"
    rtt: Annotated[Any, Read(_RTT)] = "10ms"
    rtt_spread: Annotated[Any, Read(quantity("time", low="0ns", high="10s"))] = "0ns"
    rtts: Annotated[Any, Read(optional(read_rtts(_RTT)))] = None
    ack_delay: Annotated[Any, Read(optional(quantity("time", low="0ns", high="10s")))] = None
    access: Annotated[Any, Read(optional(quantity("rate", low="64kbit", high="100gbit", why=_RATE_WHY)))] = None
    access_links: Annotated[int | None, Read(optional(whole_number(1, MOST_ACCESS_LINKS)))] = None
    servers: Annotated[int | None, Read(optional(whole_number(1, MOST_PATHS)))] = None
    buf: Annotated[Any, Read(_BUFFER)] = "1bdp"
    mtu: Annotated[int, Read(whole_number(576, 9000, _MTU_WHY))] = 1500
    duration: Annotated[Any, Read(quantity("time", "rtt", positive=True))] = "1000rtt"
    # Covers slow start with its losses, and most of the first sawtooth in the slowest case of the defaults: the window
    # of one Reno flow with one BDP of buffer grows from 163 to 326 packets in about 245 base RTTs.
    warmup: Annotated[Any, Read(quantity("time", "rtt", low="0ns", high="3600s"))] = "200rtt"
    mode: Annotated[str, Read(choice(*WATCHED_MODES))] = "tail-drop"
    drop_cost: Annotated[Any, Read(optional(number("0", "1", decimals=3)))] = None
    ecn_threshold: Annotated[Any, Read(optional(_BUFFER))] = None
    ecn: Annotated[str | None, Read(optional(choice("off", "on")))] = None
    traffic: Annotated[str, Read(read_traffic)] = "long"
    groups: Annotated[Any, Read(optional(_listed))] = None
    generator: Annotated[str | None, Read(optional(choice(*GENERATORS)))] = None
    start_spread: Annotated[Any, Read(optional(quantity("time", "rtt", low="0ns", high="3600s")))] = None
    load: Annotated[Any, Read(optional(number("0.001", "2", decimals=SIX_DECIMALS)))] = None
    sizes: Annotated[Any, Read(optional(_sizes))] = None
    arrivals: Annotated[str | None, Read(optional(_arrivals))] = None
    finite_cc: Annotated[str | None, Read(optional(_cc))] = None
    users: Annotated[int | None, Read(optional(whole_number(1, MOST_USERS)))] = None
    think: Annotated[Any, Read(optional(read_distribution("time")))] = None
    think_from: Annotated[str | None, Read(optional(choice(*THINK_FROM)))] = None
    path_of: Annotated[str | None, Read(optional(choice(*PATH_OF)))] = None
    delay: Annotated[str | None, Read(optional(choice("switch", "tc")))] = None
    reps: Annotated[int, Read(whole_number(1, 1000))] = 1
    seed: Annotated[int, Read(whole_number(0, 2**32 - 1))] = 1
    name: Annotated[str | None, Read(optional(_name))] = None
    target: Annotated[str, Read(choice(*RUN_TARGETS))] = "soft"
    clock: Annotated[str | None, Read(optional(choice("real", "virtual")))] = None
    switch: Annotated[str | None, Read(optional(choice("process", "driver", "ns3")))] = None


# The keys that a group of `groups` may have.
GROUP_KEYS = (
    "traffic", "cc", "flows", "rtt", "rtt_spread", "rtts", "ack_delay", "access", "access_links", "servers",
    "window", "pacing", "ecn", "initcwnd", "acks", "load", "sizes", "arrivals", "users", "think", "think_from",
    "path_of",
)  # fmt: skip
KEYS = (*Spec.__annotations__, *tcp_options.KEYS, *offloads.KEYS, *pacing.KEYS, *programs.KEYS)


def validate(given: Mapping[str, object]) -> tuple[Spec, dict[str, BadValue]]:
    """The spec, and the errors by key. A wrong key gets its default, so that the other keys can be checked."""
    try:
        return Spec.model_validate(given), {}
    except ValidationError as failure:
        errors: dict[str, BadValue] = {}
        for error in failure.errors():
            key = str(error["loc"][0])
            if error["type"] == "extra_forbidden":
                problem = unknown_key(key)
                errors[key] = BadValue(key.upper(), None, problem)
            else:
                errors[key] = BadValue(key.upper(), given.get(key), str(error["ctx"]["error"]))
        if "spec_version" in errors:  # in a newer version the other keys may have another meaning
            errors = {"spec_version": errors["spec_version"]}
            return Spec(), errors
        return Spec.model_validate({key: value for key, value in given.items() if key not in errors}), errors


def unknown_key(key: str) -> str:
    """The problem of a key that does not exist."""
    if key.lower() in ("kernel_package", "kernel_source"):
        return f"is not a parameter of an experiment; choose the kernel beforehand: make kernel {key.upper()}=..."
    return values.unknown_key(key, [name for name in KEYS if name != "spec_version"])


def load_yaml(path: Path) -> dict[str, object]:
    """Key -> value of a spec file. Values are text, keys are in lower case. Raises SpecError if the file is no spec."""

    def refuse(problem: object) -> SpecError:
        return SpecError([BadValue("spec file", None, str(problem), str(path))])

    try:
        content = strict_yaml.load(path, str.lower)
    except OSError as error:
        raise refuse(f"cannot be read: {error.strerror}; give the path of a spec, as in experiments/specs/") from None
    except strict_yaml.FormError as error:
        raise refuse(error) from None
    if content is None:
        raise refuse("is not a mapping of parameters; allowed: lines such as `rtt: 10ms`")
    return content
