# SPDX-License-Identifier: MIT
"""The marking threshold of a spec, in packets and bytes."""

from __future__ import annotations

from fractions import Fraction

from experiments.spec.keys import Spec
from lib.errors import BadValue
from lib.keys import Wrong


def ecn_threshold(
    spec: Spec, buffer_packets: int, buffer_bytes: int | None, bdp: Fraction, bdp_bps: int, wire_bytes: int,
    errors: dict[str, BadValue], wrong: Wrong,
) -> tuple[int | None, int | None]:  # fmt: skip
    """The marking threshold, in packets and, if BUF is in bytes, in bytes. (None, None) if MODE is not ecn.

    By default half the buffer: flows in steady state then see marks, not drops at the hard limit, and half of the
    buffer absorbs the bursts of flows that have not seen a mark yet.
    """
    if spec.mode != "ecn":
        if spec.ecn_threshold is not None and not errors.keys() & {"ecn_threshold", "mode"}:
            wrong("ecn_threshold", "has no meaning here; allowed: with MODE=ecn only")
        return None, None
    if spec.ecn_threshold is None:
        return max(1, buffer_packets // 2), None if buffer_bytes is None else max(1, buffer_bytes // 2)
    packets, in_bytes = spec.ecn_threshold.threshold(bdp, bdp_bps, wire_bytes, spec.mtu)
    if errors.keys() & {"ecn_threshold", "buf", "rate", "rtt", "mtu"}:
        return packets, in_bytes
    if (in_bytes is None) != (buffer_bytes is None):
        wrong("ecn_threshold", "and BUF are not in the same unit; allowed: both in bytes, or both in p, bdp or time")
    elif (in_bytes or packets) > (buffer_bytes or buffer_packets):
        wrong("ecn_threshold", f"is more than BUF={spec.buf.text}; allowed: up to BUF, which is the hard limit")
    return packets, in_bytes
