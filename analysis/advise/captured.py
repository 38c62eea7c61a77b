# SPDX-License-Identifier: MIT
"""An imported capture of one link, as a question about this link (FROM)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lib import regular, units
from lib.errors import InputError
from runs.names import REPETITION, SUMMARY

if TYPE_CHECKING:
    from analysis.read.columns import Columns
    from analysis.read.load import Run
    from analysis.whatif.curve import Point


class Captured:
    """An imported capture of one link. Raises InputError if the directory is something else."""

    def __init__(self, directory: Path) -> None:
        self.repetition = directory / REPETITION if (directory / REPETITION).is_dir() else directory
        try:
            self.summary: dict[str, Any] = json.loads(regular.read_text(self.repetition / SUMMARY))
        except (OSError, ValueError):
            self.summary = {}
        self.passed: dict[str, Any] = self.summary.get("captured_link") or {}
        if not self.passed:
            raise InputError(
                f"FROM={directory} is not an imported capture of a link; allowed: what make import FROM=link.pcap "
                "RATE=1gbit OUTPUT=results/mine made"
            )

    def words(self) -> dict[str, str]:
        """The keys of the question that the capture answers."""
        spec = self.summary["spec"]
        return {
            "rate": units.show(spec["rate_bps"], "rate"),
            "rtt": units.show(max(round(spec["rtt_ns"], -4), 1000), "time"),  # 10 us are more exact than it is
            "flows": str(self.flows), "mtu": str(spec["mtu_bytes"]),
        }  # fmt: skip

    @property
    def flows(self) -> int:
        """The effective number of connections that this link limits, or of all if it limits none."""
        at_a_time = self.passed["at_a_time"]
        return max(round(at_a_time["effective_of_this_link"] or at_a_time["effective"] or 1), 1)

    @property
    def limited_here(self) -> float:
        """The share of the bytes of connections that this link limits."""
        return float(self.passed["limits"].get("this link", {"bytes": 0})["bytes"])

    def line(self) -> str:
        """What the import says of the link."""
        passed, rtt = self.passed, self.passed["rtt_ns"]
        limits = sorted(passed["limits"].items(), key=lambda one: -one[1]["bytes"])
        shares = ", ".join(f"{name} {100 * one['bytes']:.0f} %" for name, one in limits if one["bytes"] >= 0.005)
        bursts = ", ".join(
            f"{one['dispersion']:.3g} in {one['window_s']:g} s" for one in passed["rates"][::2] if one["dispersion"]
        )
        spread = "" if rtt["p10"] is None else f" ({rtt['p10'] / 1e6:.3g} to {rtt['p90'] / 1e6:.3g} from p10 to p90)"
        mean = self.summary["spec"]["rtt_ns"]
        return (
            f"The capture: load {100 * passed['load']:.3g} %, {passed['at_a_time']['mean']:.3g} connections at a time, "
            f"as unequal as {self.flows} equal ones; RTT {mean / 1e6:.4g} ms, the harmonic mean{spread}; Var(N)/E(N) "
            f"{bursts}; the bytes are limited by: {shares}."
        )

    @cached_property
    def _loaded(self) -> tuple[Run, Columns]:
        from analysis.whatif import curve

        return curve.load(self.repetition)

    def curve(self, rate_bps: int, limits: Sequence[int]) -> list[Point]:
        from analysis.read.link_rate import LinkRate
        from analysis.whatif import curve

        run, queue = self._loaded
        return curve.of_run(run, queue, LinkRate(rate_bps), sorted(set(limits)))

    @property
    def deepest_packets(self) -> int:
        """Of the computed queue, which has no limit."""
        return int(self.summary["queue_depth_packets"]["max"] or 0)

    @property
    def deepest_bytes(self) -> int:
        """Of the computed queue, which has no limit."""
        return int(self.summary["queue_depth_bytes"]["max"] or 0)
