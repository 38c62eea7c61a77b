# SPDX-License-Identifier: MIT
"""Resolves specs on a host with virtual time and every feature of the lab, or on another host."""

from typing import Any

import pytest

from experiments.machine.host import Host
from experiments.spec.resolve import resolve
from lib.errors import SpecError
from model.experiment import Experiment

HOST = Host(("bbr", "cubic", "reno"), netem=True, clock="virtual", kernel="a test's kernel")


def resolved(host: Any = HOST, **given: object) -> Experiment:
    return resolve(given, host)


def problems(host: Any = HOST, **given: object) -> dict[str, str]:
    """Key -> problem, of a spec that does not resolve."""
    with pytest.raises(SpecError) as failure:
        resolve(given, host)
    return {error.key: error.problem for error in failure.value.errors}
