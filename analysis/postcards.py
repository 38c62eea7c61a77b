# SPDX-License-Identifier: MIT
"""What columns of postcards say of packets: dropped, admitted, bytes on the link."""

from __future__ import annotations

import numpy as np

from analysis.raw import Columns
from lib.frames import LEAST_FRAME_BYTES, WIRE_EXTRA_BYTES
from wire import wire

CARD = wire.POSTCARD.const


def dropped(queue: Columns) -> np.ndarray:
    """Mask of the packets that were dropped, at ingress or at egress."""
    return (queue["flags"] & CARD["POSTCARD_DROPPED"]) != 0


def admitted(queue: Columns) -> np.ndarray:
    """Mask of the packets that entered the queue: all but those dropped at ingress."""
    at_ingress = np.uint8(CARD["POSTCARD_DROPPED"] | CARD["POSTCARD_AT_INGRESS"])
    return (queue["flags"] & at_ingress) != at_ingress


def wire_bytes(packet_bytes: np.ndarray) -> np.ndarray:
    """Bytes that frames take on the link (int64): at least 60, and 24 more for FCS, preamble and gap."""
    return np.maximum(packet_bytes, LEAST_FRAME_BYTES).astype(np.int64) + WIRE_EXTRA_BYTES
