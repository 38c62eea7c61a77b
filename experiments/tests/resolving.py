# SPDX-License-Identifier: MIT
"""Resolves specs on a host, and returns the problems of a spec that does not resolve."""

import pytest

from experiments.host import Host
from experiments.resolve import resolve
from experiments.resolved import Resolved
from lib.errors import SpecError


def resolved(host: Host, **given: object) -> Resolved:
    return resolve(given, host)


def problems(host: Host, **given: object) -> dict[str, str]:
    """Key -> problem."""
    with pytest.raises(SpecError) as failure:
        resolve(given, host)
    return {error.key: error.problem for error in failure.value.errors}
