# SPDX-License-Identifier: MIT
"""`make replay RUN=...` with BUF, MODE, ECN_THRESHOLD, RATE, QUEUE or POLICY: a run's arrivals through another queue.
Parameters that are not given stay as in the run, except ECN_THRESHOLD if BUF is given: its default is half of BUF. A
run with a policy in P4, or a qdisc, needs MODE or QUEUE. Values have the same meaning as for make experiment.

The switch core alone has the queues of WATCHED_MODES. A qdisc, or an AQM in P4, needs a virtual machine, whose sender
sends the arrivals again (run/replayed_queue.py).
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from controlplane.policy import WATCHED_MODES
from experiments.spec.keys import KEYS
from experiments.spec.link_changes import STEADY
from experiments.spec.own_p4 import SHELF
from lib.errors import BadValue, InputError, RunError, SpecError, fail
from lib.exit_codes import Exit, of_parts
from lib.keys import Keys, field
from lib.quantities import Buffer, Buffers, Rate
from lib.terminal import located, say

if TYPE_CHECKING:
    from analysis.whatif.queue import Setting
    from analysis.whatif.results import Replay

TAIL_DROP = WATCHED_MODES[0]
OF_QUEUE = ("queue", "p4", "policy", "mode", "buf", "ecn_threshold")


def _as_in_the_run(name: str) -> Any:
    """The field of a key of an experiment."""
    row = KEYS[name]
    default = "as in the run, unless BUF is given" if name == "ecn_threshold" else "as in the run"
    if name == "buf":
        return field(
            f"what-if: {row.meaning}; or 10p..1bdp: the whole curve (default: {default})", _buffer, values=row.values
        )
    if name == "mode":
        modes = (*WATCHED_MODES, *SHELF)
        return field(f"what-if: {', '.join(modes)} (default: {default})", row.read, values=modes)
    return field(f"what-if: {row.meaning} (default: {default})", row.read, values=row.values)


def _as_typed(name: str) -> Any:
    """The field of a key that the experiment of a virtual machine reads."""
    return field(f"what-if: {KEYS[name].meaning}", str, values=KEYS[name].values)


def _buffer(text: object) -> Buffer | Buffers:
    low, dots, high = str(text).partition("..")
    return Buffers(Buffer(low), Buffer(high)) if dots else Buffer(text)


class WhatIfKeys(Keys):
    buf: Buffer | Buffers | None = _as_in_the_run("buf")
    mode: str | None = _as_in_the_run("mode")
    ecn_threshold: Buffer | None = _as_in_the_run("ecn_threshold")
    queue: str | None = _as_typed("queue")
    p4: str | None = _as_typed("p4")
    policy: str | None = _as_typed("policy")
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
            in_a_machine = _in_a_machine(asked)
            setting, replay = (_replayed_in_a_machine if in_a_machine else _in_the_core)(repetition, asked)
            directory, summary = results.what_if(repetition, setting, words, replay)
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


def _in_a_machine(asked: WhatIfKeys) -> bool:
    """Whether the queue is one that only an experiment in virtual time has."""
    return bool(asked.queue or asked.p4 or asked.policy or asked.mode in SHELF)


def _replayed_in_a_machine(repetition: Path, asked: WhatIfKeys) -> tuple[Setting, Replay]:
    """The queue of an experiment, and what sends a run's arrivals through it."""
    from analysis.read.link_rate import LinkRate
    from analysis.whatif.queue import Setting
    from experiments.run import replayed_queue
    from runs.spec_file import load_spec

    spec = load_spec(repetition)
    if spec.rate_changes and not asked.rate:
        problem = f"is missing; the run's rate changes, and a replay with {_needs_it(asked)} has a constant one"
        raise SpecError([BadValue("RATE", None, problem)])
    rate = asked.rate.bps if asked.rate else spec.rate_bps
    words = {name: str(value) for name in OF_QUEUE if (value := getattr(asked, name)) is not None}
    if not asked.queue:
        packets, in_bytes = spec.buffer_packets, spec.threshold_bytes
        if asked.buf:
            assert isinstance(asked.buf, Buffer)
            bdp = Fraction(rate * spec.rtt_ns, 8 * 10**9 * spec.wire_bytes)
            packets, in_bytes = asked.buf.threshold(bdp, rate, spec.wire_bytes, spec.mtu_bytes)
        words["buf"] = f"{in_bytes}b" if in_bytes else f"{packets}p"
    queue = replayed_queue.experiment(spec, words, rate)
    setting = Setting(LinkRate(rate), queue.queue_rule, queue.buffer_packets, queue.threshold_bytes, None)
    return setting, partial(replayed_queue.replay, queue)


def _needs_it(asked: WhatIfKeys) -> str:
    return next(name.upper() for name in ("queue", "p4", "policy", "mode") if getattr(asked, name))


def _curve(repetition: Path, asked: WhatIfKeys, buffers: Buffers, words: dict[str, str]) -> list[str]:
    """The lines of a curve over many lengths of a queue that drops its tail."""
    from analysis.read.link_rate import LinkRate
    from analysis.whatif import curve
    from runs.spec_file import load_spec

    others = {name: value for name in OF_QUEUE if name != "buf" and (value := getattr(asked, name))}
    if others and others != {"mode": TAIL_DROP}:
        wrong = next(name.upper() for name, value in others.items() if value != TAIL_DROP)
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


def _in_the_core(repetition: Path, asked: WhatIfKeys) -> tuple[Setting, Replay]:
    """The queue of the run, with the given parameters replaced, and what replays it."""
    from analysis.read import link_rate
    from analysis.read.documents import read_switch
    from analysis.whatif.queue import Setting, replay
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
        problem = f"is missing; a replay has no {spec.queue_rule}; give QUEUE, or one of {', '.join(WATCHED_MODES)}"
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
    return Setting(link, mode, packets, in_bytes, ecn), replay
