# SPDX-License-Identifier: MIT
"""Which lab records an experiment."""

from __future__ import annotations

from controlplane.targets import TARGETS
from experiments import capabilities
from experiments.deploy import inventory_of
from experiments.lab.interface import Lab
from experiments.resolved import Resolved
from lib.errors import RunError


def choose(spec: Resolved, inventory: str = "") -> Lab:
    """The lab of an experiment. Only a testbed has an `inventory`. Raises RunError if the inventory cannot be used."""
    always = capabilities.on_testbed(TARGETS[spec.target].capabilities)
    if inventory or always:
        from experiments.lab import soft_testbed, testbed

        if spec.target not in testbed.NEEDED:
            raise RunError(f"INVENTORY={inventory}: TARGET={spec.target} runs in the lab of this machine; leave it out")
        lab = testbed.TestbedLab if always else soft_testbed.SoftTestbedLab
        return lab(spec, testbed.load(inventory_of(spec.target, inventory), spec.target))
    if spec.switch == "ns3":
        from experiments.lab.ns3 import Ns3Lab

        return Ns3Lab(spec)
    if spec.clock == "virtual":
        from experiments.lab.virtual import VirtualLab

        return VirtualLab(spec)
    from experiments.lab.real import RealLab

    return RealLab(spec)
