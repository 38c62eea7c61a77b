# SPDX-License-Identifier: MIT
"""A run is not valid if packets arrived closer together than their access link allows."""

from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.derive import derive
from analysis.tests import simulate


@pytest.mark.parametrize(("access_bps", "is_valid"), [(10**13, True), (2_000_000, False)])
def test_access__is_checked_packet_by_packet(
    fresh: Callable[[str], Path], undrawn: None, access_bps: int, is_valid: bool
) -> None:
    directory = fresh("two_flows")
    spec = directory / "spec.yaml"
    spec.write_text(f"{spec.read_text()}access_bps: {access_bps}\n")
    simulate.record_digests(directory)
    reasons = derive(directory)[0]["reasons"]
    assert [reason for reason in reasons if not reason.startswith("access: ")] == []
    assert (reasons == []) is is_valid
