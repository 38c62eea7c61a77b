# SPDX-License-Identifier: MIT
"""The settings in which two runs differ, in the user's words.

A setting that follows from another setting is not counted. The BDP follows from RATE and RTT. If CLOCK differs, the
switch, the generator and the place of the delay follow from CLOCK; if MODE differs, the ECN threshold follows from
MODE. A buffer that both runs give in the same words (1bdp, 250us) follows from RATE and RTT. A threshold that is the
same share of the buffer in both runs follows from the buffer, a duration of the same number of RTTs from the RTT.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from analysis import in_words
from analysis.amounts import si
from analysis.figures import algorithms
from hosts.tune.tcp_options import LINUX, MIXED, profile
from runs.run_table import NOT_OF_A_POINT

Spec = Mapping[str, Any]
OF_CLOCK = ("switch", "generator", "delay")
IN_RTTS = ("duration_ns", "warmup_ns", "start_spread_ns")
OF_MODE = ("ecn_threshold_packets", "ecn_threshold_bytes")
OF_BUFFER = ("ecn_threshold_packets", "ecn_threshold_bytes", "threshold_bytes")
DERIVED = (*NOT_OF_A_POINT, "rate_pps", "wire_bytes", "bdp_packets", "repetition")
WORDS = {"rate_bps": "RATE", "rtt_ns": "RTT", "rtt_spread_ns": "RTT_SPREAD", "mtu_bytes": "MTU", "access_bps": "ACCESS"}


class Difference(NamedTuple):
    """A setting, with its value in each run."""

    name: str
    first: str
    second: str


def differences(first: Spec, second: Spec) -> list[Difference]:
    """The settings whose values differ, the clock first."""
    both = (first, second)
    compared = [_of(both, "CLOCK", lambda spec: spec.get("clock", "real"))]
    compared += [_of(both, name, _of_groups(key)) for name, key in (("CC", "cc"), ("FLOWS", "flows"))]
    compared += [_of(both, "GROUPS", _own_settings), _of(both, "BUF", lambda spec: spec["buffer_packets"], _buffer)]
    if first.get("buffer_given") is not None and first["buffer_given"] == second.get("buffer_given"):
        compared = [each for each in compared if each is None or each.name != "BUF"]
    skipped = {*DERIVED, "clock", "groups", "buffer_packets"}
    skipped |= {*OF_CLOCK} if compared[0] else set()
    skipped |= {*OF_MODE} if first["mode"] != second["mode"] else set()
    skipped |= {key for key in IN_RTTS if _ratio(first, key, "rtt_ns") == _ratio(second, key, "rtt_ns")}
    skipped |= {
        key for key in OF_BUFFER if _ratio(first, key, "buffer_packets") == _ratio(second, key, "buffer_packets")
    }
    for key in dict.fromkeys((*first, *second)):
        if key not in skipped:
            compared += _of_key(both, key)
    return [each for each in compared if each]


def _of_key(both: tuple[Spec, Spec], key: str) -> list[Difference | None]:
    """The difference of a key of the specs. Each key of a mapping is a setting, except that TCP's options of two known
    profiles are one.
    """
    none = LINUX if key == "tcp" else {}
    values: list[Any] = [none if spec.get(key) is None else spec[key] for spec in both]
    if not all(isinstance(value, dict) for value in values):
        texts = [_text(key, spec.get(key)) for spec in both]
        return [Difference(WORDS.get(key, _word(key)), *texts)] if texts[0] != texts[1] else []
    if key == "tcp" and MIXED not in (profiles := [*map(profile, values)]):
        return [Difference("PROFILE", *profiles)] if profiles[0] != profiles[1] else []
    inner = dict.fromkeys((*values[0], *values[1]))
    return [difference for name in inner if (difference := _of_inner(values, name))]


def _of_inner(values: list[dict[str, Any]], name: str) -> Difference | None:
    first, second = (value.get(name) for value in values)
    return None if first == second else Difference(_word(name), _text(name, first), _text(name, second))


def _of(
    both: tuple[Spec, Spec],
    name: str,
    value: Callable[[Spec], Any],
    text: Callable[[Spec], str] | None = None,
) -> Difference | None:
    first, second = map(value, both)
    shown = text or (lambda spec: str(value(spec)))
    return None if first == second else Difference(name, shown(both[0]), shown(both[1]))


def _of_groups(key: str) -> Callable[[Spec], str]:
    """The algorithms, or the numbers of flows, of all groups of long flows."""

    def text(spec: Spec) -> str:
        values = [group.get(key) for group in spec.get("groups") or ()]
        return ", ".join(algorithms.name(value) if key == "cc" else str(value) for value in values) or "none"

    return text


def _own_settings(spec: Spec) -> str:
    """The groups' settings other than algorithm and number of flows."""
    texts = [
        _text("", {key: value for key, value in group.items() if key not in ("cc", "flows") and value is not None})
        for group in spec.get("groups") or ()
    ]
    return "none" if {*texts} <= {"none"} else "; ".join(texts)


def _buffer(spec: Spec) -> str:
    return in_words.buffer_text(spec)


def _ratio(spec: Spec, key: str, over: str) -> Any:
    value = spec.get(key)
    return value / spec[over] if isinstance(value, (int, float)) else value


def _word(key: str) -> str:
    for end in ("_bps", "_ns", "_packets", "_bytes"):
        key = key.removesuffix(end)
    return key.upper()


def _text(key: str, value: Any) -> str:
    """A value in words. A rate (key `..._bps`) or a time (`..._ns`) has its unit; other numbers have none."""
    if value is None or value in ([], {}):
        return "none"
    if isinstance(value, dict):
        return " ".join(f"{name}={_text(name, each)}" for name, each in value.items() if each is not None)
    if isinstance(value, list):
        return ", ".join(_text(key, each) for each in value)
    if isinstance(value, (int, float)) and key.endswith(("_bps", "_ns")):
        return si(float(value), "b/s") if key.endswith("_bps") else si(value / 1e9, "s")
    return str(value)
