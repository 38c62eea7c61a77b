// SPDX-License-Identifier: MIT
// Zoom and pan: each figure is an SVG whose view box follows buttons, keys (+ - 0 Escape and arrows), dragging, a double
// click, two fingers, and the wheel. The wheel counts only with Ctrl or Meta, or if the figure has the focus; otherwise the
// page scrolls. Without this script figures are static.
"use strict";
for (const picture of document.querySelectorAll(".picture")) {
  const svg = picture.querySelector("svg"), [width, height] = svg.getAttribute("viewBox").split(" ").slice(2).map(Number);
  const MOST = 40, STEP = 1.5;
  let x = 0, y = 0, scale = 1, drawn = true;
  const fingers = new Map();

  const clamp = (value, least, most) => Math.min(Math.max(value, least), most);
  const button = (text, name, does) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.title = name;
    made.setAttribute("aria-label", name);
    made.addEventListener("click", does);
    return made;
  };

  function draw() {
    drawn = true;
    svg.setAttribute("viewBox", `${x} ${y} ${width / scale} ${height / scale}`);
    picture.classList.toggle("zoomed", scale > 1);
    shown.textContent = scale > 1 ? `${Math.round(scale * 100)} %` : "";
  }
  function move(toX, toY, toScale) {
    scale = clamp(toScale, 1, MOST);
    x = clamp(toX, 0, width - width / scale);
    y = clamp(toY, 0, height - height / scale);
    if (drawn) requestAnimationFrame(draw);
    drawn = false;
  }
  // The point (px, py), in shares of the frame, stays where it is.
  function zoom(factor, px = 0.5, py = 0.5) {
    const to = clamp(scale * factor, 1, MOST);
    move(x + px * (width / scale - width / to), y + py * (height / scale - height / to), to);
  }
  const pan = (dx, dy) => move(x + dx * width / scale, y + dy * height / scale, scale);
  const reset = () => move(0, 0, 1);
  const share = event => {
    const box = svg.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  };

  const tools = document.createElement("div"), shown = document.createElement("output");
  tools.className = "tools";
  tools.setAttribute("role", "group");
  tools.setAttribute("aria-label", `Zoom: ${svg.getAttribute("aria-label")}`);
  shown.setAttribute("aria-label", "magnification");
  tools.append(shown, button("−", "zoom out", () => zoom(1 / STEP)), button("+", "zoom in", () => zoom(STEP)),
               button("⟲", "whole figure", reset));
  picture.after(tools);
  picture.classList.add("zooms");
  svg.tabIndex = 0;
  svg.setAttribute("aria-keyshortcuts", "+ - 0 ArrowLeft ArrowRight ArrowUp ArrowDown");

  const KEYS = {
    "+": () => zoom(STEP), "=": () => zoom(STEP), "-": () => zoom(1 / STEP), "0": reset, "Escape": reset,
    "ArrowLeft": () => pan(-0.1, 0), "ArrowRight": () => pan(0.1, 0), "ArrowUp": () => pan(0, -0.1), "ArrowDown": () => pan(0, 0.1),
  };
  svg.addEventListener("keydown", event => {
    const does = KEYS[event.key], arrow = event.key.startsWith("Arrow");
    if (!does || event.ctrlKey || event.metaKey || event.altKey || (arrow && scale === 1)) return;
    event.preventDefault();
    does();
  });
  svg.addEventListener("wheel", event => {
    const asked = event.ctrlKey || event.metaKey || document.activeElement === svg;
    if (!asked || (scale === 1 && event.deltaY > 0 && !event.ctrlKey)) return;
    event.preventDefault();
    const pixels = event.deltaY * (event.deltaMode === 1 ? 20 : 1);
    zoom(Math.exp(-clamp(pixels, -120, 120) / (event.ctrlKey ? 120 : 300)), ...share(event));
  }, { passive: false });
  svg.addEventListener("dblclick", event => zoom(STEP * STEP, ...share(event)));

  svg.addEventListener("pointerdown", event => {
    if (event.button > 0) return;
    fingers.set(event.pointerId, share(event));
    svg.setPointerCapture(event.pointerId);
    picture.classList.toggle("dragged", scale > 1);
  });
  svg.addEventListener("pointermove", event => {
    const before = fingers.get(event.pointerId);
    if (!before) return;
    const now = share(event), other = [...fingers].find(([id]) => id !== event.pointerId);
    fingers.set(event.pointerId, now);
    if (!other) {
      pan(before[0] - now[0], before[1] - now[1]);
      return;
    }
    const still = other[1], ratio = height / width;
    const length = point => Math.hypot(point[0] - still[0], (point[1] - still[1]) * ratio);
    zoom(length(now) / Math.max(length(before), 0.01), (now[0] + still[0]) / 2, (now[1] + still[1]) / 2);
    pan((before[0] - now[0]) / 2, (before[1] - now[1]) / 2);
  });
  for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, event => {
    fingers.delete(event.pointerId);
    picture.classList.toggle("dragged", fingers.size > 0 && scale > 1);
  });

  // Print the whole figure, whatever part is on the screen.
  let before = null;
  addEventListener("beforeprint", () => { before = [x, y, scale]; reset(); draw(); });
  addEventListener("afterprint", () => { if (before) move(...before); before = null; });
}
