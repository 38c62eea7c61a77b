# SPDX-License-Identifier: MIT
"""`make replay RUN=...` with BUF, MODE, ECN_THRESHOLD or RATE: a run's arrivals through another queue.
Parameters that are not given stay as in the run, except ECN_THRESHOLD if BUF is given: its default is half of BUF. A
run with a policy in P4, or a qdisc, needs MODE: a replay has neither.
Values have the same meaning as for make experiment.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from controlplane.policy import WATCHED_MODES
from experiments.spec.keys import KEYS
from experiments.spec.link_changes import STEADY
from lib.errors import BadValue, InputError, RunError, SpecError, fail
from lib.exit_codes import Exit, of_parts
from lib.keys import Keys, field
from lib.quantities import Buffer, Buffers, Rate
from lib.terminal import located, say

if TYPE_CHECKING:
    from analysis.whatif.queue import Setting

TAIL_DROP = WATCHED_MODES[0]


def _as_in_the_run(name: str) -> Any:
    """The field of a key of an experiment."""
    row = KEYS[name]
    default = "as in the run, unless BUF is given" if name == "ecn_threshold" else "as in the run"
    if name == "buf":
        return field(
            f"what-if: {row.meaning}; or 10p..1bdp: the whole curve (default: {default})", _buffer, values=row.values
        )
    if name == "mode":
        return field(f"what-if: {', '.join(WATCHED_MODES)} (default: {default})", row.read, values=WATCHED_MODES)
    return field(f"what-if: {row.meaning} (default: {default})", row.read, values=row.values)


def _buffer(text: object) -> Buffer | Buffers:
    low, dots, high = str(text).partition("..")
    return Buffers(Buffer(low), Buffer(high)) if dots else Buffer(text)


class WhatIfKeys(Keys):
    buf: Buffer | Buffers | None = _as_in_the_run("buf")
    mode: str | None = _as_in_the_run("mode")
    ecn_threshold: Buffer | None = _as_in_the_run("ecn_threshold")
    rate: Rate | None = field("what-if: a constant rate of the bottleneck link (default: as in the run)", STEADY)


def given(asked: WhatIfKeys) -> dict[str, str]:
    """The given keys of a what-if and their values."""
    return {name.upper(): str(value) for name in WhatIfKeys.model_fields if (value := getattr(asked, name)) is not None}


def whatif(run: Path, asked: WhatIfKeys, words: dict[str, str]) -> int:
    """Replays each repetition of `run` and prints the results. Returns the exit status. Raises SpecError, RunError."""
    from analysis.advise import with_senders
    from analysis.advise.command import PUBLISHED
    from analysis.whatif import results
    from runs import verdict
    from runs.spec_file import load_spec, repetitions

    statuses: list[int] = []
    for repetition in repetitions(run):
        try:
            if isinstance(asked.buf, Buffers):
                for line in _curve(repetition, asked, asked.buf, words):
                    say(line)
                verdict.say_doubts(repetition)
                statuses.append(Exit.DONE)
                continue
            setting = _setting(repetition, asked)
            directory, summary = results.what_if(repetition, setting, words)
            for line in results.lines(directory, summary):
                say(line)
            spec = load_spec(repetition)
            if text := with_senders.line(spec, setting.rate, setting.mode, setting.buffer_packets, PUBLISHED):
                say(f"  {text}")
            verdict.say_doubts(repetition)
            statuses.append(Exit.DONE)
        except InputError as error:
            statuses.append(fail([str(error)]))
        except OSError as error:
            raise RunError(f"{located(error, repetition)}; nothing was written") from None
    return of_parts(statuses)


def _curve(repetition: Path, asked: WhatIfKeys, buffers: Buffers, words: dict[str, str]) -> list[str]:
    """The lines of a curve over many lengths of a queue that drops its tail."""
    from analysis.read.link_rate import LinkRate
    from analysis.whatif import curve
    from runs.spec_file import load_spec

    if asked.ecn_threshold or asked.mode not in (None, TAIL_DROP):
        wrong = "MODE" if asked.mode not in (None, TAIL_DROP) else "ECN_THRESHOLD"
        problem = f"has no curve; allowed with BUF={buffers}: MODE={TAIL_DROP}, or a single BUF"
        raise SpecError([BadValue(wrong, words[wrong], problem)])
    spec = load_spec(repetition)
    rate = asked.rate.bps if asked.rate else spec.bdp_bps
    bdp = Fraction(rate * spec.rtt_ns, 8 * 10**9 * spec.wire_bytes)
    low, high = (each.threshold(bdp, rate, spec.wire_bytes, spec.mtu_bytes)[0] for each in buffers)
    if not low < high <= curve.MOST_PACKETS:
        problem = f"is from {low} to {high} packets; allowed: the smaller first, and at most {curve.MOST_PACKETS}"
        raise SpecError([BadValue("BUF", str(buffers), problem)])
    link = LinkRate(asked.rate.bps) if asked.rate else None
    return curve.lines(*curve.write(repetition, link, low, high, words))


def _setting(repetition: Path, asked: WhatIfKeys) -> Setting:
    """The queue of the run, with the given parameters replaced."""
    from analysis.read import link_rate
    from analysis.read.documents import read_switch
    from analysis.whatif.queue import Setting
    from runs.spec_file import load_spec

    spec, switch = load_spec(repetition), read_switch(repetition)
    start_ns = at.schedule_start if (at := switch.settings.get(str(switch.bottleneck_port))) else None
    own = link_rate.of(spec, repetition, start_ns or 0)
    recorded = Setting.of(spec, own)
    link = link_rate.LinkRate(asked.rate.bps) if asked.rate else own
    rate = asked.rate.bps if asked.rate else spec.bdp_bps
    bdp = Fraction(rate * spec.rtt_ns, 8 * 10**9 * spec.wire_bytes)
    packets, in_bytes = recorded.buffer_packets, recorded.threshold_bytes
    if asked.buf:
        assert isinstance(asked.buf, Buffer)
        packets, in_bytes = asked.buf.threshold(bdp, rate, spec.wire_bytes, spec.mtu_bytes)
    if not asked.mode and (spec.p4 or spec.queue):
        problem = f"is missing; a replay has no {spec.queue_rule}; give one of {', '.join(WATCHED_MODES)}"
        raise SpecError([BadValue("MODE", None, problem)])
    mode = asked.mode or recorded.mode
    # The run's marking threshold stays only if the buffer stays: it belongs to that buffer.
    ecn = recorded.ecn_threshold if mode == "ecn" and not asked.buf else None
    if asked.ecn_threshold:
        of_packets, of_bytes = asked.ecn_threshold.threshold(bdp, rate, spec.wire_bytes, spec.mtu_bytes)
        ecn = of_packets if in_bytes is None else of_bytes
        problem = ""
        if mode != "ecn":
            problem = "has no meaning here; allowed: with MODE=ecn only"
        elif ecn is None or (of_bytes is None) != (in_bytes is None):
            problem = "and the buffer are not in the same unit; allowed: both in bytes, or both in p, bdp or time"
        elif ecn > (in_bytes or packets):
            problem = "is more than the buffer; allowed: up to it"
        if problem:
            raise SpecError([BadValue("ECN_THRESHOLD", str(asked.ecn_threshold), problem)])
    return Setting(link, mode, packets, in_bytes, ecn)
