# SPDX-License-Identifier: MIT
"""`make replay RUN=...` with BUF, MODE, ECN_THRESHOLD or RATE: a run's arrivals through another queue.
Parameters that are not given stay as in the run, except ECN_THRESHOLD if BUF is given: its default is half of BUF.
Values have the same meaning as for make experiment.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from experiments.spec import validate
from lib import units
from lib.errors import BadValue, InputError, RunError, SpecError, fail
from lib.exit_codes import Exit, of_parts
from lib.queue_length import threshold
from lib.terminal import located, say

KEYS = ("buf", "mode", "ecn_threshold", "rate")


def whatif(run: Path, given: dict[str, str]) -> int:
    """Replays each repetition of `run` and prints the results. Returns the exit status. Raises SpecError, RunError."""
    from analysis.advise import with_senders
    from analysis.advise.command import PUBLISHED
    from analysis.whatif import results
    from runs import verdict
    from runs.spec_file import load_spec, repetitions

    statuses: list[int] = []
    for repetition in repetitions(run):
        try:
            setting = _setting(repetition, given)
            directory, summary = results.what_if(
                repetition, setting, {key.upper(): text for key, text in given.items()}
            )
            for line in results.lines(directory, summary):
                say(line)
            spec = load_spec(repetition)
            if text := with_senders.line(spec, setting.rate_bps, setting.mode, setting.buffer_packets, PUBLISHED):
                say(f"  {text}")
            verdict.say_doubts(repetition)
            statuses.append(Exit.DONE)
        except InputError as error:
            statuses.append(fail([str(error)]))
        except OSError as error:
            raise RunError(f"{located(error, repetition)}; nothing was written") from None
    return of_parts(statuses)


def _setting(repetition: Path, given: dict[str, str]) -> Any:
    """The queue of the run, with the given parameters replaced."""
    from analysis.whatif.queue import Setting
    from runs.spec_file import load_spec

    spec = load_spec(repetition)
    recorded = Setting.of(spec)
    read, wrong = validate(given)
    errors = list(wrong.values())
    rate = units.whole(read.rate) if "rate" in given else recorded.rate_bps
    bdp = Fraction(rate * spec.rtt_ns, 8 * 10**9 * spec.wire_bytes)
    packets, in_bytes = recorded.buffer_packets, recorded.threshold_bytes
    if "buf" in given:
        packets, in_bytes = threshold(read.buf, bdp, rate, spec.wire_bytes, spec.mtu_bytes)
    mode = read.mode if "mode" in given else recorded.mode
    # The run's marking threshold stays only if the buffer stays: it belongs to that buffer.
    ecn = recorded.ecn_threshold if mode == "ecn" and "buf" not in given else None
    if "ecn_threshold" in given and not wrong:
        if mode != "ecn":
            errors.append(
                BadValue("ECN_THRESHOLD", given["ecn_threshold"], "has no meaning here; allowed: with MODE=ecn only")
            )
        of_packets, of_bytes = threshold(read.ecn_threshold, bdp, rate, spec.wire_bytes, spec.mtu_bytes)
        ecn = of_packets if in_bytes is None else of_bytes
        if ecn is None or (of_bytes is None) != (in_bytes is None):
            text = "and the buffer are not in the same unit; allowed: both in bytes, or both in p, bdp or time"
            errors.append(BadValue("ECN_THRESHOLD", given["ecn_threshold"], text))
        elif ecn > (in_bytes or packets):
            errors.append(
                BadValue("ECN_THRESHOLD", given["ecn_threshold"], "is more than the buffer; allowed: up to it")
            )
    if errors:
        raise SpecError(errors)
    return Setting(rate, mode, packets, in_bytes, ecn)
