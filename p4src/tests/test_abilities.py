# SPDX-License-Identifier: MIT
"""A test is skipped, with the reason, only on a target that lacks an ability that the test needs."""

import pytest

from controlplane.targets import TARGETS
from p4src.tests.abilities import ABILITIES, lacking, needs

OWN = frozenset(name for name, ability in ABILITIES.items() if ability.has is None)


def test_soft_switch__lacks_nothing():
    assert lacking(tuple(ABILITIES), TARGETS["soft"].capabilities, OWN) == []


def test_bmv2__lacks_abilities_by_its_capabilities():
    reasons = lacking(tuple(ABILITIES), TARGETS["bmv2"].capabilities, OWN)
    assert reasons == [ABILITIES[name].otherwise for name in ("exact_time", "bit_rate", "exact_depth")]


def test_own_abilities__come_from_the_target_alone():
    assert lacking(tuple(OWN), TARGETS["soft"].capabilities, frozenset()) == [ABILITIES[name].otherwise for name in OWN]


def test_needs__refuses_an_unknown_ability():
    with pytest.raises(ValueError, match="no ability exact_tme; there are exact_time"):
        needs("exact_time", "exact_tme")
