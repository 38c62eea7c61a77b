# SPDX-License-Identifier: MIT
"""Paths of finite flows: which flow took which of spec.yaml's `paths`, by its source address."""

from __future__ import annotations

from ipaddress import ip_address

import numpy as np

from analysis.read.load import Run
from model.paths import paths

NO_PATH = -1  # no path, as for a long flow
IPV4_MAPPED = 0xFFFF << 32


def _number(address: str) -> int:
    """The address as 128 bits, IPv4 as ::ffff:a.b.c.d; 0 if the text is no address."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return 0
    return int(parsed) | (IPV4_MAPPED if parsed.version == 4 else 0)


def path_of_records(run: Run) -> np.ndarray:
    """The index in `paths` of each record of flows.bsf (int64); NO_PATH if no path has the record's source address."""
    assert run.flow_records is not None
    high, low = run.flow_records["src_addr_hi"], run.flow_records["src_addr_lo"]
    result = np.full(len(low), NO_PATH, dtype=np.int64)
    for index, path in enumerate(paths(run.experiment)):
        number = _number(path.src_addr)
        result[(high == np.uint64(number >> 64)) & (low == np.uint64(number & (1 << 64) - 1))] = index
    return result


def access_link_of_flows(run: Run) -> np.ndarray:
    """The shared access link of each flow number (int64), from the records of the sending program; 0: none."""
    result = np.zeros(len(run.flows) + 1, dtype=np.int64)
    if run.flow_records is None:
        return result
    links = [path.access_link for path in paths(run.experiment)]
    number = run.flow_records["flow"]
    with_packets = number >= 0
    result[number[with_packets]] = np.array([*links, 0], dtype=np.int64)[path_of_records(run)][with_packets]
    return result
