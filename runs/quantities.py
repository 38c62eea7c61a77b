# SPDX-License-Identifier: MIT
"""The registry of a run's quantities: where each is in the summary, how people read it, and where it is shown.

A new number of a run is a row of QUANTITIES. The row's `column` puts it into the run table, so that filters, criteria
and figures may name it; `line`, `listed` and `mean` show it in the other tables. analysis/README.md defines the
numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from hosts.tune.tcp_options import LINUX

Kind = type[int | float | str | bool]


class Unit(NamedTuple):
    """How people read a number. A terminal always shows the same unit: `form` of value * times / over. Pages show a
    prefix that suits the value: value / base_over in the SI unit `base`. Without `base` they show a share, or a number.
    """

    form: str = "{:.0f}"
    times: float = 1
    over: float = 1
    base: str = ""
    base_over: float = 1

    def scaled(self, value: float) -> float:
        return value * self.times / self.over

    def text(self, value: float) -> str:
        return self.form.format(self.scaled(value))

    @property
    def symbol(self) -> str:
        """What `form` has behind the number, such as " ms"."""
        return self.form.partition("}")[2]


COUNT, RATIO, INDEX = Unit(), Unit("{:.3g}"), Unit("{:.3f}")
SHARE, SMALL_SHARE = Unit("{:.2f} %", 100), Unit("{:.3g} %", 100)
TIME_NS, TIME_US = Unit("{:.4g} ms", 1, 1e6, "s", 1e9), Unit("{:.0f} us", 1, 1, "s", 1e6)
RATE_BPS = Unit("{:.4g} Mb/s", 1, 1e6, "b/s")


class Quantity(NamedTuple):
    """`path` leads to the value in the summary; "" if the value follows from several values, the run's place or
    environment.json (run_table.row). `share_of`: the value is divided by the one there.
    """

    name: str
    kind: Kind
    about: str = ""
    path: str = ""
    unit: Unit = COUNT
    share_of: str = ""
    column: bool = True  # of the run table
    title: str = ""  # of a column of pages
    digits: int | None = None  # on pages
    line: str = ""  # of a run's results on the terminal
    label: str = ""  # the words behind the number in this line
    listed: str = ""  # the head of its column in `bufferscope runs`
    mean: str = ""  # the head of its column in a sweep's table of means

    def of(self, document: Mapping[str, Any]) -> Any:
        """The value in a summary; None if unknown."""
        value = at(document, self.path)
        if not self.share_of:
            return value
        total = at(document, self.share_of)
        return value / total if is_number(value) and is_number(total) and total else None


def is_number(value: Any) -> bool:
    """Whether a column can hold the value: a finite number of 64 bits."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def at(document: Any, path: str) -> Any:
    """The value at a path such as utilization.mean; None if the document does not have it."""
    for key in path.split("."):
        document = document.get(key) if isinstance(document, Mapping) else None
    return document


def _settings(kind: Kind, *names: str, path: str = "spec.", **more: Any) -> list[Quantity]:
    """Settings at their places in the spec; without `path`, settings that follow from several of them."""
    return [Quantity(name, kind, path=path and path + name, **more) for name in names]


def _number(name: str, path: str, about: str, unit: Unit = RATIO, **shown: Any) -> Quantity:
    return Quantity(name, float, about, path, unit, **shown)


def _count(name: str, path: str, about: str, **shown: Any) -> Quantity:
    return Quantity(name, int, about, path, **shown)


def _depth(cut: str, words: str, label: str = "", kind: Kind = int, **shown: Any) -> Quantity:
    about = f"queue depth that packets found on arrival, {words}, packets"
    return Quantity(f"depth_{cut}_packets", kind, about, f"queue_depth_packets.{cut}", title=f"depth {cut}",
                    line="queue" if label else "", label=label, **shown)  # fmt: skip


def _delay(cut: str, words: str, label: str, **shown: Any) -> Quantity:
    about, title = f"queueing delay of packets that were not dropped, {words}", f"delay {cut}"
    return Quantity(f"queue_delay_{cut}_ns", int, about, f"queue_delay_ns.{cut}", TIME_NS, title=title,
                    line="delay", label=label, **shown)  # fmt: skip


def _window(cut: str, words: str) -> Quantity:
    name = f"window_{cut}_packets"
    return _count(name, f"almost_fairness.{name}", f"packets in flight of a flow at its ACKs, {words}")


def _of_line(line: str, path: str, label: str, unit: Unit = COUNT) -> Quantity:
    """A number that only the terminal shows."""
    return Quantity(path, float, path=path, unit=unit, column=False, line=line, label=label)


QUANTITIES: tuple[Quantity, ...] = (
    Quantity("run", str, "path of the repetition below the results", listed="run"),
    Quantity("sweep", str, "the run's sweep"),
    Quantity("point", str, "digest of the settings, the same for all repetitions"),
    Quantity("repetition", int, "repetition", title="rep"),
    Quantity("seed", int, "seed of the run", "spec.seed"),
    Quantity("attempt", int, "attempts until the run was valid or given up", title="attempts"),
    *_settings(str, "clock", path="", listed="clock"),
    *_settings(str, "target", path=""),
    Quantity("valid", bool, "whether the run is valid"),
    Quantity("reasons", str, "why the run is not valid"),
    Quantity("imported", bool, "whether the run is from another tool's captures, without a ledger"),
    *_settings(str, "cc", path="", listed="cc"),
    *_settings(int, "flows", path="", listed="flows"),
    *_settings(str, "traffic", path=""),
    *_settings(str, "mode"),
    *_settings(int, "rate_bps", unit=RATE_BPS, listed="rate"),
    *_settings(int, "rtt_ns", unit=TIME_NS, listed="RTT"),
    *_settings(int, "rtt_spread_ns", path=""),
    *_settings(int, "mtu_bytes"),
    *_settings(int, "buffer_packets", listed="buffer (p)"),
    *_settings(int, "bdp_packets"),
    _number("buffer_over_bdp", "spec.buffer_packets", "buffer over the BDP",
            share_of="rules.bdp_packets_exact", title="B/BDP", digits=3,
            listed="buffer (BDP)"),
    *_settings(int, "ecn_threshold_packets"),
    *_settings(int, "access_bps", path=""),
    *_settings(str, "finite_cc", path=""),
    *_settings(float, "load", path=""),
    *_settings(int, "users", path=""),
    *_settings(str, "flow_sizes", "profile", path=""),
    *(Quantity(name, str if isinstance(value, str) else int) for name, value in LINUX.items()),
    *_settings(str, "offloads", path=""),
    *_settings(int, "nic_rate_bps", "coalesce_us", path="spec.offloads."),
    *_settings(str, "pacing", path=""),
    *_settings(int, "window_packets", path=""),
    *_settings(str, "rtts_ns", path=""),
    *_settings(int, "access_links", path=""),
    *_settings(str, "ecn", path=""),
    *_settings(int, "ack_delay_ns", path=""),
    *_settings(str, "groups", path=""),
    *_settings(str, "rate_changes", path=""),
    *_settings(float, "link_loss", path=""),
    Quantity("jitter_ns", int, path="spec.jitter.most_ns"),
    *_settings(str, "p4", path=""),
    *_settings(str, "queue"),
    _number("utilization_mean", "utilization.mean", "mean over the measurement window", SHARE, title="utilization",
            line="utilization", label=" mean", listed="utilization (mean)", mean="utilization"),
    _number("utilization_p01", "utilization.p01", "1st percentile of utilization over windows of ten RTTs", SHARE,
            title="p1", line="utilization", label=" in the worst 1 % of windows", listed="worst 1 %",
            mean="p1 of utilization"),
    _number("goodput_bps", "goodput_bps", "TCP payload that left the queue for the first time", RATE_BPS,
            title="goodput", line="goodput"),
    _number("goodput_p01_bps", "goodput_p01_bps", "1st percentile of goodput over windows of ten RTTs", RATE_BPS),
    _number("application_goodput_p01_bps", "application_goodput_p01_bps", "the same of what the receiver read",
            RATE_BPS),
    _number("queue_nonempty_fraction", "queue_nonempty_fraction", "share of packets that found the queue not empty",
            SHARE, title="found a queue"),
    _depth("mean", "mean", kind=float),
    _depth("p01", "1st percentile", " p1"),
    _depth("p50", "median", " median", listed="depth p50 (p)"),
    _depth("p99", "99th percentile", " p99", listed="p99 (p)"),
    _depth("max", "largest", " most packets"),
    _delay("p50", "median", " median", listed="delay p50 (ms)", mean="delay p50"),
    _delay("p99", "99th percentile", " p99", listed="p99 (ms)", mean="delay p99"),
    _delay("max", "largest", " most, in the queue", column=False),
    _of_line("theory", "open_loop.mean_depth_packets.measured", " packets mean depth", INDEX),
    _of_line("theory", "open_loop.mean_depth_packets.theory", " expected", INDEX),
    _of_line("theory", "open_loop.mean_depth_packets.standard_error", " standard error", Unit("{:.2g}")),
    _count("arrivals", "arrivals", "packets that came to the queue in the measurement window"),
    _count("drops", "drops", "packets that the queue dropped in the measurement window", title="drops",
           line="drops", label=" packets", listed="drops (p)"),
    _number("loss", "drops", "dropped packets over arrivals", SMALL_SHARE, share_of="arrivals", column=False, digits=3,
            line="drops", label=" of all", mean="loss"),
    _count("marks", "marks", "packets that the queue marked in the measurement window", title="marks",
           line="marks", label=" packets"),
    _number("mark_fraction", "marks", "marked packets over arrivals", SMALL_SHARE, share_of="arrivals", column=False,
            line="marks", label=" of all"),
    _count("link_lost", "link_lost", "packets that the link lost behind the queue in the measurement window",
           line="lost by link", label=" packets"),
    _number("jain_index", "jain_index", "fairness of the flows' goodput, 1 is equal", INDEX, title="Jain",
            line="fairness", label=" (Jain: 1 is equal)", mean="Jain"),
    _number("delta", "almost_fairness.delta", "windows, from the 1st to the 99th percentile, are within a factor of Δ "
            "of the fair share", INDEX, title="Δ", digits=3),
    _window("p01", "1st percentile"),
    _window("p50", "median"),
    _window("p99", "99th percentile"),
    _number("in_flight_mean_packets", "aggregate_window_packets.in_flight_mean",
            "packets in flight of all flows together, mean over time"),
    _number("flows_losing_per_rtt", "loss.flows_losing_per_rtt", "flows with a drop, mean over RTTs with a drop"),
    _count("loss_events", "loss.events", "loss events"),
    _number("drained_of_bdp", "drained_fraction.of_bdp.median", "fall of the queue, median, over the BDP"),
    _number("min_utilization_after_loss", "utilization.min_after_loss",
            "least utilization of an RTT after a loss event, median", SHARE),
    _of_line("postcards", "ledger.postcards_sent", " sent"),
    _of_line("postcards", "ledger.postcards_rows", " analysed"),
    _of_line("trace", "ledger.tcp_events", " records"),
    _of_line("trace", "ledger.tcp_events_lost", " lost"),
    _count("ledger_missing", "", "postcards and TCP events that did not reach the analysis"),
    _of_line("lateness", "fidelity.lateness_us.p50", " median", TIME_US),
    _of_line("lateness", "fidelity.lateness_us.p99", " p99", TIME_US),
    _number("lateness_max_us", "fidelity.lateness_us.max", "largest lateness of a frame", TIME_US, line="lateness",
            label=" most, of frames"),
    _of_line("kept rate", "rate.kept_pps", " packets/s"),
    _of_line("kept rate", "rate.measured_pps", " packets/s measured back to back", Unit("{:.1f}")),
    _of_line("delay line", "fidelity.line.lateness_us.p50", " median", TIME_US),
    _of_line("delay line", "fidelity.line.lateness_us.p99", " p99", TIME_US),
    _of_line("delay line", "fidelity.line.lateness_us.max", " most late", TIME_US),
    _of_line("rate error", "fidelity.rate_error_fraction", "", Unit("{:.4f} %", 100)),
    _number("wall_s", "", "seconds that the run took, without its analysis", title="wall s", digits=3),
    Quantity("kept", str, "which files of the run were kept"),
    Quantity("commit", str, "commit of bufferscope"),
    Quantity("p4_digest", str, "digest of the P4 program"),
    Quantity("kernel_digest", str, "digest of the virtual-time kernel"),
    _number("measured_s", "measured_s", "seconds of the measurement window"),
    _count("summary_mtime_ns", "", "when the run was analysed"),
    Quantity("note", str, "what its user noted (NOTE)", listed="note"),
)  # fmt: skip
BY_NAME = {quantity.name: quantity for quantity in QUANTITIES}
TERMINAL = (
    "utilization", "delay", "queue", "theory", "goodput", "fairness", "drops", "marks", "lost by link",
    "postcards", "trace", "lateness", "kept rate", "delay line", "rate error",
)  # fmt: skip
LINES = {line: [quantity for quantity in QUANTITIES if quantity.line == line] for line in TERMINAL}
SINGLE = TERMINAL[TERMINAL.index("postcards") :]  # lines for a single repetition only
EACH_REPETITION = ("utilization_mean", "queue_delay_p50_ns", "queue_delay_p99_ns", "loss")  # of several, in brief
SWEEP_PAGE = (  # the columns of a sweep's table of runs
    "utilization_mean", "utilization_p01", "queue_nonempty_fraction", "goodput_bps", "depth_p50_packets",
    "depth_p99_packets", "queue_delay_p50_ns", "queue_delay_p99_ns", "drops", "marks", "jain_index", "delta", "attempt",
    "wall_s",
)  # fmt: skip
FLOWS = {  # the numbers of each flow in the summary that have a distribution over flows: title in the report, unit
    "goodput_bps": ("goodput", RATE_BPS), "application_goodput_bps": ("received", RATE_BPS),
    "packets": ("packets", COUNT), "drops": ("drops", COUNT), "marks": ("marks", COUNT),
    "retransmits": ("retransmits", COUNT), "cwnd_packets_mean": ("cwnd, mean (packets)", COUNT),
    "in_flight_packets_mean": ("in flight, mean (packets)", COUNT), "srtt_us_mean": ("srtt, mean", TIME_US),
    "rtt_min_us": ("least RTT", TIME_US), "packet_rtt_us_p50": ("packet RTT, median", TIME_US),
}  # fmt: skip
WHATIF = {  # the terminal's titles of what a what-if tells -> the quantities
    "drops": "drops", "marks": "marks", "delay median": "queue_delay_p50_ns", "delay p99": "queue_delay_p99_ns",
    "queue p1": "depth_p01_packets", "queue median": "depth_p50_packets", "queue p99": "depth_p99_packets",
    "queue most": "depth_max_packets", "non-empty": "queue_nonempty_fraction", "utilization": "utilization_mean",
}  # fmt: skip
CRITERIA = {"nonempty": "queue_nonempty_fraction", "utilization": "utilization_p01"}  # of a search for the least buffer


def value(row: Mapping[str, Any], name: str) -> Any:
    """The value of a quantity in a row of the run table; None if unknown."""
    return row[name] if name in row else BY_NAME[name].of(row)
