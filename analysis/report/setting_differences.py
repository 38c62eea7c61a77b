# SPDX-License-Identifier: MIT
"""The settings in which two runs differ, in the user's words.

A setting that follows from another setting is not counted. The BDP follows from RATE and RTT. If CLOCK differs, the
switch, the generator and the place of the delay follow from CLOCK; if MODE differs, the ECN threshold follows from
MODE. A buffer that both runs give in the same words (1bdp, 250us) follows from RATE and RTT. A threshold that is the
same share of the buffer in both runs follows from the buffer, a duration of the same number of RTTs from the RTT.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from analysis.figures import algorithms
from analysis.wording import verdict_text
from analysis.wording.formats import si
from hosts.tune.tcp_options import LINUX, MIXED, profile
from model.experiment import NOT_OF_A_POINT, Experiment
from model.groups import Group

OF_CLOCK = ("switch", "generator", "delay")
IN_RTTS = ("duration_ns", "warmup_ns", "start_spread_ns")
OF_MODE = ("ecn_threshold_packets", "ecn_threshold_bytes")
OF_BUFFER = ("ecn_threshold_packets", "ecn_threshold_bytes", "threshold_bytes")
DERIVED = (*NOT_OF_A_POINT, "rate_pps", "wire_bytes", "bdp_packets", "buffer_packets")
NONE = "none"


class Difference(NamedTuple):
    """A setting, with its value in each run."""

    name: str
    first: str
    second: str


def differences(first: Experiment, second: Experiment) -> list[Difference]:
    """The settings whose values differ, the clock first."""
    both = (first, second)
    mine, other = map(_settings, both)
    skipped = {*DERIVED}
    skipped |= {*OF_CLOCK} if mine["clock"] != other["clock"] else set()
    skipped |= {*OF_MODE} if mine["mode"] != other["mode"] else set()
    skipped |= {*LINUX} if MIXED not in (mine["profile"], other["profile"]) else {"profile"}
    for keys, over in ((IN_RTTS, "rtt_ns"), (OF_BUFFER, "buffer_packets")):
        skipped |= {key for key in keys if len({_ratio(spec, key, over) for spec in both}) == 1}
    given = first.buffer_given
    if first.buffer_packets == second.buffer_packets or (given is not None and given == second.buffer_given):
        skipped.add("buf")
    compared = {key: (mine.get(key, NONE), other.get(key, NONE)) for key in (*mine, *other) if key not in skipped}
    return [Difference(_word(key), *texts) for key, texts in compared.items() if texts[0] != texts[1]]


def _settings(spec: Experiment) -> dict[str, str]:
    """Each setting in words: the clock, the groups, the buffer, then all others by their keys. Each key of a mapping is
    a setting.
    """
    tcp = spec.tcp or LINUX
    said = {"kind", "cc", "flows", *(() if spec.has_own_settings else Group.model_fields)}
    own = [_text("", group.model_dump(exclude=said, exclude_none=True)) for group in spec.groups]
    texts = {
        "clock": spec.clock,
        "traffic": spec.traffic,
        "cc": ", ".join(algorithms.name(group.cc) for group in spec.long) or NONE,
        "flows": ", ".join(str(group.flows) for group in spec.long) or NONE,
        "groups": NONE if {*own} <= {NONE} else "; ".join(own),
        "buf": verdict_text.buffer_text(spec),
    }
    shared = spec.shared.model_dump(mode="json", include={*Group.model_fields} - {"number", *LINUX})
    for key, value in {**spec.dump(), **shared, "rtt_ns": spec.rtt_ns, "tcp": tcp}.items():
        texts |= {"profile": profile(tcp)} if key == "tcp" else {}
        settings = value if isinstance(value, dict) else {} if key in ("clock", "groups") else {key: value}
        texts |= {name: _text(name, each) for name, each in settings.items()}
    return texts


def _ratio(spec: Experiment, key: str, over: str) -> float | None:
    value = getattr(spec, key)
    return None if value is None else value / getattr(spec, over)


def _word(key: str) -> str:
    for end in ("_bps", "_ns", "_packets", "_bytes"):
        key = key.removesuffix(end)
    return key.upper()


def _text(key: str, value: Any) -> str:
    """A value in words. A rate (key `..._bps`) or a time (`..._ns`) has its unit; other numbers have none."""
    if value is None or value in ([], {}):
        return NONE
    if isinstance(value, dict):
        return " ".join(f"{name}={_text(name, each)}" for name, each in value.items() if each is not None) or NONE
    if isinstance(value, list):
        return ", ".join(_text(key, each) for each in value)
    if isinstance(value, (int, float)) and key.endswith(("_bps", "_ns")):
        return si(float(value), "b/s") if key.endswith("_bps") else si(value / 1e9, "s")
    return str(value)
