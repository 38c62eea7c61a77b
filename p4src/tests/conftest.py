# SPDX-License-Identifier: MIT
"""The suite's switch, configured as in the lab."""

import pytest

from p4src.tests.under_test import SoftCore


@pytest.fixture
def switch() -> SoftCore:
    return SoftCore().configure()
