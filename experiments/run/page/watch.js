// SPDX-License-Identifier: MIT
// Asks for the state of the run or sweep each second, and draws it with uPlot.
"use strict";
const EVERY_MS = 1000, HIGH = 230, FONT = "12px system-ui, 'DejaVu Sans', sans-serif";
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999", "#8c6d1f"];
const CHARTS = [  // name in the state, title, divisor of the values
  ["depth_packets", "Queue depth, packets (most in each interval)", 1],
  ["drops", "Drops in each interval, packets", 1],
  ["throughput_bps", "Throughput at the bottleneck, Mb/s", 1e6],
  ["windows_packets", "Congestion windows, packets", 1],
];
const UNITS = {
  buffer_packets: ["buffer, packets", 1], buffer_over_bdp: ["buffer, BDP", 1], flows: ["flows", 1], load: ["load", 1],
  rate_bps: ["rate, Mb/s", 1e6], rtt_ns: ["RTT, ms", 1e6], link_loss: ["loss of the link", 1],
  utilization_mean: ["utilization", 1], depth_mean_packets: ["mean depth, packets", 1], loss: ["loss", 1],
  queue_delay_p99_ns: ["p99 of the queue's delay, ms", 1e6], jain_index: ["Jain's index", 1],
};
const element = id => document.getElementById(id);
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name);
const drawn = new Map();
let misses = 0;

function draw(name, title, xTitle, names, data, points) {
  let chart = drawn.get(name);
  const shape = JSON.stringify([title, xTitle, names]);
  if (!chart || chart.shape !== shape) {
    const section = chart ? chart.section : element("charts").appendChild(document.createElement("section"));
    section.replaceChildren(Object.assign(document.createElement("h2"), { textContent: title }));
    const axis = { stroke: css("--ink"), grid: { stroke: css("--line") }, ticks: { stroke: css("--line") }, font: FONT,
      labelFont: FONT };
    const plot = new uPlot({
      width: section.clientWidth, height: HIGH,
      scales: { x: { time: false }, y: { range: (_, low, high) => [Math.min(0, low || 0), (high || 1) * 1.05] } },
      legend: { live: false },
      series: [{ label: xTitle }, ...names.map((label, at) => ({
        label, stroke: COLOURS[at % COLOURS.length], width: points ? 0 : 1.25, spanGaps: true,
        paths: points ? () => null : undefined, points: points ? { show: true, size: 8 } : { show: false },
      }))],
      axes: [{ ...axis, label: xTitle, labelSize: 18, size: 30 }, { ...axis, size: 62 }],
    }, data, section);
    if (names.length < 2 && !points && name !== "throughput_bps") plot.root.querySelector(".u-legend").hidden = true;
    chart = { plot, section, shape };
    drawn.set(name, chart);
  } else chart.plot.setData(data);
}

function drawRun(run) {
  if (!run.times_s || !run.times_s.length) return;
  for (const [name, title, by] of CHARTS) {
    const names = Object.keys(run[name]).filter(each => run[name][each].length);
    if (!names.length) continue;
    const data = names.map(each => run[name][each].map(value => value === null ? null : value / by));
    const buffer = name === "depth_packets" && run.buffer_packets ? `; buffer ${run.buffer_packets}` : "";
    draw(name, title + buffer, "s of traffic", names, [run[`${name}_times_s`] || run.times_s, ...data], false);
  }
}

function choose(select, names) {
  if (select.options.length === names.length) return;
  const before = select.value;
  select.replaceChildren(...names.map(name => new Option(UNITS[name][0], name)));
  if (names.includes(before)) select.value = before;
}

function drawSweep(sweep) {
  if (!sweep.points.length) return;
  element("axes").hidden = false;
  choose(element("x"), sweep.axes);
  choose(element("y"), sweep.results);
  const x = element("x").value, y = element("y").value, [xTitle, xBy] = UNITS[x], [yTitle, yBy] = UNITS[y];
  const points = sweep.points.filter(point => typeof point[x] === "number" && typeof point[y] === "number");
  points.sort((a, b) => a[x] - b[x]);
  const names = [...new Set(points.map(point => point.label))].sort();
  const column = name => points.map(point => point.label === name ? point[y] / yBy : null);
  if (points.length) draw("sweep", yTitle, xTitle, names, [points.map(point => point[x] / xBy), ...names.map(column)], true);
  const bad = sweep.points.filter(point => !point.valid).length;
  if (bad) element("detail").textContent += ` – ${bad} not valid`;
}

function show(state) {
  const { done = 0, elapsed_s = 0, head = "starting", detail = "", ended } = state.progress;
  element("head").textContent = ended ? `${head.split(":")[0]}: ended` : head;
  element("detail").textContent = detail;
  element("done").value = ended ? 1 : done;
  const left_s = done > 0 ? elapsed_s * (1 / done - 1) : null;
  const thin = state.run && state.run.every > 1 ? ` One of ${state.run.every} blocks of records is drawn.` : "";
  element("left").textContent = (ended ? "The report is in the run's directory."
    : left_s === null ? "" : left_s < 1 ? "Almost done." : `About ${Math.ceil(left_s)} s left.`) + thin;
  if (state.run) drawRun(state.run);
  if (state.sweep) drawSweep(state.sweep);
  return ended;
}

async function ask() {
  try {
    const answer = await fetch("state");
    if (show(await answer.json())) return;
    misses = 0;
  } catch (error) {
    if (++misses > 2) {
      element("left").textContent = "The run has ended, or was ended; the page shows its last state.";
      return;
    }
  }
  setTimeout(ask, EVERY_MS);
}

addEventListener("resize", () => {
  for (const { plot, section } of drawn.values()) plot.setSize({ width: section.clientWidth, height: HIGH });
});
ask();
