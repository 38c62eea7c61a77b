# SPDX-License-Identifier: MIT
"""Makes traces of a link's rate, in the formats of lib/link_trace.py.

    python -m experiments.spec.link_trace satellite sky.csv --rate 100mbit --duration 120s --seed 1

Both models are random walks with published structure and freely chosen sizes. They make traces of the kind, not
measurements of a network. The same seed gives the same bytes.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from lib import files, units, values
from lib.errors import fail
from lib.link_dynamics import LEAST_BPS, RateSchedule
from lib.link_trace import MS, SECOND, csv_text, mahimahi_text

# A satellite in low orbit: links are assigned anew every 15 s (Starlink: Tanveer et al. 2023, Mohan et al. 2024).
EPOCH_NS, SATELLITE_TICK_NS = 15 * SECOND, 100 * MS
EPOCH_SHARE = 0.4  # an epoch's mean is uniform within this share of the trace's
NOISE_SHARE, NOISE_MEMORY = 0.1, 0.9  # of an epoch's mean: standard deviation and correlation from tick to tick
OUTAGE_CHANCE, OUTAGE_NS = 0.3, (20 * MS, 200 * MS)  # of an epoch, at its start

# A cellular link as Sprout models it (Winstein et al. 2013, section 3.1): the rate is a Brownian motion between 0 and
# 1000 packets/s with 200 packets/s per square root of a second; from 0 it escapes once per second.
CELLULAR_TICK_NS = 20 * MS
BROWNIAN_SHARE = 0.4  # of the mean, per square root of a second
ESCAPES_PER_S = 1


def satellite(mean_bps: int, duration_ns: int, seed: int) -> RateSchedule:
    """A link over satellites in low orbit: levels of 15 s, noise within them, short outages between them."""
    return _finished(_satellite(mean_bps, duration_ns, random.Random(f"satellite {seed}")), mean_bps, duration_ns)


def _satellite(mean_bps: int, duration_ns: int, rng: random.Random) -> Iterator[tuple[int, float]]:
    noise = 0.0
    for epoch_ns in range(0, duration_ns, EPOCH_NS):
        level = mean_bps * rng.uniform(1 - EPOCH_SHARE, 1 + EPOCH_SHARE)
        outage_ns = rng.randrange(*OUTAGE_NS) if rng.random() < OUTAGE_CHANCE and epoch_ns else 0
        if outage_ns:
            yield epoch_ns, 0.0
        for at_ns in range(epoch_ns, min(epoch_ns + EPOCH_NS, duration_ns), SATELLITE_TICK_NS):
            noise = NOISE_MEMORY * noise + math.sqrt(1 - NOISE_MEMORY**2) * rng.gauss(0, NOISE_SHARE)
            if at_ns + SATELLITE_TICK_NS > epoch_ns + outage_ns:
                yield max(at_ns, epoch_ns + outage_ns), level * max(1 + noise, 0.0)


def cellular(mean_bps: int, duration_ns: int, seed: int) -> RateSchedule:
    """A cellular link: a Brownian motion of the rate, reflected at twice the mean, that rests at 0."""
    return _finished(_cellular(mean_bps, duration_ns, random.Random(f"cellular {seed}")), mean_bps, duration_ns)


def _cellular(mean_bps: int, duration_ns: int, rng: random.Random) -> Iterator[tuple[int, float]]:
    rate_bps, tick_s = float(mean_bps), CELLULAR_TICK_NS / SECOND
    for at_ns in range(0, duration_ns, CELLULAR_TICK_NS):
        yield at_ns, rate_bps
        step_bps = rng.gauss(0, BROWNIAN_SHARE * mean_bps * math.sqrt(tick_s))
        if rate_bps:
            rate_bps = max(min(rate_bps + step_bps, 4 * mean_bps - rate_bps - step_bps), 0.0)
        elif rng.random() < 1 - math.exp(-ESCAPES_PER_S * tick_s):
            rate_bps = abs(step_bps)


def _finished(steps: Iterator[tuple[int, float]], mean_bps: int, duration_ns: int) -> RateSchedule:
    """Whole rates, without steps that change nothing; after the end the mean holds."""
    entries: list[tuple[int, int]] = []
    for at_ns, rate in [*steps, (duration_ns, float(mean_bps))]:
        rate_bps = round(rate) if rate >= LEAST_BPS else 0
        if not entries or entries[-1][1] != rate_bps:
            entries.append((at_ns, rate_bps))
    return RateSchedule(tuple(entries))


MODELS: dict[str, Callable[[int, int, int], RateSchedule]] = {"satellite": satellite, "cellular": cellular}


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.spec.link_trace", description="Writes a trace of a rate."
    )
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("output", type=Path)
    parser.add_argument("--rate", default="100mbit", help="the mean, in wire bits/s (default: %(default)s)")
    parser.add_argument("--duration", default="60s", help="(default: %(default)s)")
    parser.add_argument("--seed", default="1", help="(default: %(default)s)")
    parser.add_argument("--format", choices=("csv", "mahimahi"), default="csv")
    given = parser.parse_args(words)
    readers: dict[str, Callable[[object], object]] = {
        "rate": values.quantity("rate", low="1mbit", high="100gbit"),
        "duration": values.quantity("time", low="1s", high="1000s"),
        "seed": values.whole_number(0, 2**32 - 1),
    }
    numbers: dict[str, int] = {}
    for name, read_value in readers.items():
        try:
            value = read_value(getattr(given, name))
        except ValueError as error:
            return fail([f"--{name} {getattr(given, name)} {error}"])
        numbers[name] = units.integer(value) if isinstance(value, units.Quantity) else int(str(value))
    schedule = MODELS[given.model](numbers["rate"], numbers["duration"], numbers["seed"])
    csv = given.format == "csv"
    text = csv_text(schedule) if csv else mahimahi_text(schedule, numbers["duration"])
    try:
        files.write_text(given.output, text)
    except OSError as error:
        return fail([f"{given.output}: {error.strerror}"])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
