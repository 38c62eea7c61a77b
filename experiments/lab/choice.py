# SPDX-License-Identifier: MIT
"""Which lab records an experiment."""

from __future__ import annotations

from controlplane.targets import TARGETS
from experiments.lab.interface import Lab
from experiments.setup.deploy import inventory_of
from model.experiment import Experiment


def choose(spec: Experiment, inventory: str = "") -> Lab:
    """The lab of an experiment. Only a testbed has an `inventory`. Raises RunError if the inventory cannot be used."""
    always = TARGETS[spec.target].capabilities.front_panel
    if inventory or always:
        from experiments.lab import linux_testbed, testbed

        lab = testbed.TestbedLab if always else linux_testbed.LinuxTestbedLab
        with_line = spec.delay == "switch" and not TARGETS[spec.target].capabilities.links
        return lab(spec, testbed.load(inventory_of(spec.target, inventory), spec.target, with_line))
    if spec.switch == "ns3":
        from experiments.lab.ns3 import Ns3Lab

        return Ns3Lab(spec)
    if spec.clock == "virtual":
        from experiments.lab.virtual import VirtualLab

        return VirtualLab(spec)
    from experiments.lab.real import RealLab

    return RealLab(spec)
