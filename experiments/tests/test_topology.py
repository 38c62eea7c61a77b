# SPDX-License-Identifier: MIT
"""The lab's names and switch ports are the same for the runner and for Ansible, no two hosts share a name, port or
address, and a policy is in the unit of BUF.
"""

import yaml

from controlplane.policy import Ecn, EgressThreshold, Policy, TailDrop, Unit
from experiments import topology
from experiments.host import CHECKOUT, Host
from experiments.resolve import resolve
from experiments.run_plan import policy

LAB = CHECKOUT / "ansible/inventories/lab"
HOST = Host(("cubic",), netem=False)


def test_names__are_those_of_the_inventory() -> None:
    inventory = yaml.safe_load((LAB / "hosts.yml").read_text())
    names = {*topology.Network(1500).namespaces, *topology.Network(1500, "bmv2_switch", line=True).namespaces}
    assert set(inventory["namespaces"]["hosts"]) == names


def test_ports__are_those_of_the_inventory() -> None:
    ports = yaml.safe_load((LAB / "group_vars/switches.yml").read_text())["switch_ports"]
    assert ports == [f"{host.port}={host.switch_interface}" for host in topology.HOSTS]


def test_addresses__are_unique() -> None:
    for values in zip(*((h.name, h.port, h.ipv4, h.mac, h.switch_mac) for h in topology.HOSTS), strict=True):
        assert len(set(values)) == len(topology.HOSTS)


def test_policy__is_in_the_unit_that_was_given() -> None:
    def of(**given: object) -> Policy:
        return policy(resolve(given, HOST))

    assert of() == TailDrop(163, Unit.PACKETS)
    assert of(buf="300kB") == TailDrop(300000, Unit.BYTES)
    assert of(mode="ecn", ecn_threshold="20p") == Ecn(20, 163, Unit.PACKETS)
    assert of(mode="ecn", buf="300kB") == Ecn(150000, 300000, Unit.BYTES)
    assert of(mode="egress-threshold") == EgressThreshold(163, mark_instead_of_drop=False, unit=Unit.PACKETS)
    assert of(mode="egress-ecn", buf="300kB") == EgressThreshold(300000, mark_instead_of_drop=True, unit=Unit.BYTES)
