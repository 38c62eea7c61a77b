# SPDX-License-Identifier: MIT
"""The suite's switch, configured as in the lab."""

from __future__ import annotations

import pytest

from p4src.tests.under_test import SoftCore


@pytest.fixture
def switch() -> SoftCore:
    return SoftCore().configure()
