# SPDX-License-Identifier: MIT
"""spec.yaml of a repetition: the resolved experiment. The keys that the analysis uses are checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hosts.traffic.open_loop import MOST_FLOW_PACKETS, SIZES, is_sizes
from hosts.traffic.transfers import KINDS
from lib import strict_yaml
from lib.errors import InputError
from lib.frames import LEAST_IP_BYTES, MOST_IP_BYTES
from lib.terminal import one_line
from runs import record
from runs.names import REPETITION_NAME, SPEC_FILE

SPEC_VERSION = 1

# Keys of spec.yaml that the analysis computes with. Numbers are positive, except those of MAY_BE_ZERO.
REQUIRED_SPEC = {
    "rate_bps": int, "rtt_ns": int, "mtu_bytes": int, "wire_bytes": int, "buffer_packets": int, "bdp_packets": int,
    "duration_ns": int, "warmup_ns": int, "mode": str, "groups": list,
}  # fmt: skip

# Keys of open-loop traffic. hosts/traffic/schedule.h defines the values of `sizes` and `arrivals`.
OPEN_LOOP_SPEC = {"datagram_flows": int, "load": float, "sizes": str, "arrivals": str}

# Optional keys that the analysis reads, if they exist and are not null.
OPTIONAL_SPEC = {
    "name": str, "target": str, "clock": str, "switch": str, "delay": str, "traffic": str, "generator": str,
    "threshold_bytes": int, "ecn_threshold_packets": int, "ecn_threshold_bytes": int, "rate_pps": int,
    "access_bps": int, "rtts_ns": list, "access_links": int, "servers": int, "paths": list, "link_of_flows": list,
    "links_bps": list, "transfers": list, "datagrams": list,
    "tcp": dict, "offloads": dict, "pacing": str, "window_packets": int, "ecn": str, "ack_delay_ns": int,
    "idle_rtt_ns": int,
    "program": dict,
}  # fmt: skip

MAY_BE_ZERO = ("warmup_ns", "ack_delay_ns", "idle_rtt_ns")
_ALLOWED: dict[object, str] = {
    float: "a number with a decimal point, above 0 and below 1000000",
    int: "a positive integer below 2**60",
    str: "text",
    list: "a list",
    dict: "a mapping",
    "sizes": f"{', '.join(SIZES)}, or bursts:<n>p with n from 1 to {MOST_FLOW_PACKETS}",
    **dict.fromkeys(MAY_BE_ZERO, "an integer, 0 or more and below 2**60"),
}


def load_spec(directory: Path) -> dict[str, Any]:
    """spec.yaml of a repetition, checked. Raises InputError."""
    if damage := record.damage(directory):
        raise InputError(f"{directory}: {record.lines(damage)}")
    return read(directory / SPEC_FILE)


def idle_rtt_ns(spec: dict[str, Any]) -> int:
    """RTT of a packet that belongs to no flow. With ACK delays of groups it can be shorter than every flow's RTT."""
    return int(spec.get("idle_rtt_ns", spec["rtt_ns"]))


def check_name(directory: Path) -> None:
    """Raises InputError for a name that is not UTF-8: tables and pages could not contain it."""
    try:
        str(directory).encode()
    except UnicodeEncodeError:
        raise InputError(f"{directory}: its name is not UTF-8; rename it") from None


def repetitions(run: Path) -> list[Path]:
    """`run` itself if it is a repetition, by its spec or its name, else the repetitions in it."""
    if (run / SPEC_FILE).exists() or REPETITION_NAME.fullmatch(run.name):
        return [run]
    return sorted(path for path in run.glob("rep-*") if path.is_dir()) or [run]


def the_repetition(run: Path) -> Path:
    """`run` itself if it is a repetition, else its only repetition. Raises InputError."""
    check_name(run)
    if (run / SPEC_FILE).is_file():
        return run
    repetitions = sorted(path for path in run.glob("rep-*") if (path / SPEC_FILE).is_file())
    if len(repetitions) != 1:
        what = f"has {len(repetitions)} repetitions" if repetitions else "is not a run"
        example = repetitions[0] if repetitions else "results/latest/rep-1"
        raise InputError(f"{run}: {what}; allowed: one repetition, as {example}")
    return repetitions[0]


def read(path: Path) -> dict[str, Any]:
    check_name(path.parent)
    try:
        spec = strict_yaml.load_typed(path)
    except FileNotFoundError:
        raise InputError(f"{path}: missing; give the directory of a repetition (results/<run>/rep-<k>)") from None
    except (OSError, strict_yaml.FormError) as error:
        what = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{path}: {one_line(what)}; restore it, it is a raw file") from None
    if spec is None:
        raise InputError(f"{path}: holds no keys; restore it, it is a raw file")
    version = spec.get("spec_version")
    if type(version) is int and version > SPEC_VERSION:
        raise InputError(
            f"{path}: spec_version is {version}; this bufferscope reads {SPEC_VERSION}; use a newer bufferscope"
        )
    if type(version) is not int or version != SPEC_VERSION:
        raise InputError(
            f"{path}: spec_version must be {SPEC_VERSION}, is {one_line(repr(version))}; restore it, it is a raw file"
        )
    required = REQUIRED_SPEC | (
        OPEN_LOOP_SPEC if spec.get("traffic") == "open-loop" and "datagrams" not in spec else {}
    )
    required |= {key: kind for key, kind in OPTIONAL_SPEC.items() if spec.get(key) is not None}
    wrong = [
        f"{key} must be {_ALLOWED.get(key, _ALLOWED[kind])}, is {one_line(repr(spec.get(key)))}"
        for key, kind in required.items()
        if type(spec.get(key)) is not kind
        or (kind is int and not (key not in MAY_BE_ZERO) <= spec[key] < 1 << 60)
        or (kind is float and not 0 < spec[key] < 1e6)
        or (key == "sizes" and not is_sizes(spec[key]))
    ]
    if not wrong and not all(
        isinstance(g, dict) and isinstance(g.get("cc"), str) and type(g.get("flows", 0)) in (int, type(None))
        for g in spec["groups"]
    ):
        wrong.append("groups must be a list of {cc, flows}")
    if not wrong and not all(
        isinstance(g, dict) and isinstance(g.get("cc"), str) and g.get("kind") in KINDS
        for g in spec.get("transfers") or ()
    ):
        wrong.append(f"transfers must be a list of {{kind, cc, ...}} with kind {' or '.join(KINDS)}")
    if not wrong and not all(
        isinstance(g, dict) and type(g.get("flows")) is int and is_sizes(g.get("sizes"))
        for g in spec.get("datagrams") or ()
    ):
        wrong.append(f"datagrams must be a list of {{flows, load, sizes, ...}} with sizes {_ALLOWED['sizes']}")
    if not wrong and not all(
        isinstance(path, dict) and isinstance(path.get("src_addr"), str)
        and all(type(path.get(key)) is int and 0 <= path[key] < 1 << 60 for key in ("rtt_ns", "access_link"))
        for path in spec.get("paths") or ()
    ):  # fmt: skip
        wrong.append("paths must be a list of {src_addr, rtt_ns, access_link}")
    rates = spec.get("links_bps") or []
    if not wrong and not (
        all(type(bps) is int and 0 < bps < 1 << 60 for bps in rates)
        and all(type(link) is int and 0 <= link <= len(rates) for link in spec.get("link_of_flows") or ())
    ):
        wrong.append(
            "links_bps must be a list of rates, positive integers below 2**60, and link_of_flows a list of indices "
            "into links_bps: 1 is the first link, 0 means no link"
        )
    program = spec.get("program") or {}
    if not wrong and not all(
        isinstance(program.get(key, [""]), list) and all(isinstance(word, str) for word in program.get(key, ()))
        for key in ("server", "client")
    ):
        wrong.append("program must be {server: [words], client: [words], ...}")
    if not wrong and "sizes" in required and not LEAST_IP_BYTES <= spec["mtu_bytes"] <= MOST_IP_BYTES:
        wrong.append(f"mtu_bytes must be from {LEAST_IP_BYTES} to {MOST_IP_BYTES}, is {spec['mtu_bytes']}")
    if wrong:
        raise InputError(f"{path}: {'; '.join(wrong)}; restore it, it is a raw file")
    return spec
