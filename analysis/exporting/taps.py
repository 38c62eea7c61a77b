# SPDX-License-Identifier: MIT
"""Exports what two taps before and behind the queue saw: the captures of a run with TAPS=1, checked."""

from __future__ import annotations

import shutil
from pathlib import Path

from analysis.read import complete_run
from captures.reader import Capture
from lib.errors import InputError
from runs.names import TAPS
from runs.spec_file import load_spec


def write(repetition: Path, output: Path) -> int:
    """Copies both captures (pcap, ns of CLOCK_REALTIME, headers only) into the directory `output`. Returns the number
    of their frames. Raises InputError, OSError.
    """
    if not load_spec(repetition).taps:
        raise InputError(f"{repetition}: nobody captured its packets; allowed: a run with TAPS=1, or FORMAT=pcapng")
    complete_run.check(repetition, raw=TAPS)
    count = 0
    for name in TAPS:
        capture = Capture(repetition / name)
        count += sum(map(len, capture.batches()))
        if capture.damage:
            raise InputError(f"{capture.damage}; allowed: a run with whole raw files")
        shutil.copyfile(repetition / name, output / name)
    return count
