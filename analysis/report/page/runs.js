// SPDX-License-Identifier: MIT
// The table of runs: filters above the table, and column titles that sort it. Without this script the page has all rows;
// the script only hides and reorders them. A row may have several values of a filter, a line each.
"use strict";
{
  const table = document.getElementById("runs"), body = table.tBodies[0], rows = [...body.rows];
  const form = document.getElementById("filters"), shown = document.getElementById("shown");
  const selects = [...form.querySelectorAll("select")], text = form.querySelector("input");
  const whole = shown.textContent;
  const texts = new Map();  // the text of each row in lower case, made by the first search that needs it

  function said(row) {
    if (!texts.has(row)) texts.set(row, row.textContent.toLowerCase());
    return texts.get(row);
  }
  function filter() {
    const asked = selects.filter(select => select.value).map(select => [`f${select.dataset.filter}`, select.value]);
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    let left = 0;
    for (const row of rows) {
      const fits = asked.every(([key, value]) => row.dataset[key].split("\n").includes(value)) && words.every(word => said(row).includes(word));
      row.hidden = !fits;
      left += fits;
    }
    const names = selects.filter(select => select.value).map(select => `${select.labels[0].firstChild.data.trim()} ${select.value}`);
    const why = [...names, ...words.map(word => `“${word}”`)].join(", ");
    shown.textContent = why ? `${left} of ${whole}: ${why}` : whole;
  }
  // Numbers by value, words alphabetically, unknown values last in both directions.
  function key(row, column) {
    const cell = row.cells[column], value = cell.dataset.v ?? cell.textContent.replace(/\u2009/g, "");
    if (value === "–" || value === "") return null;
    const number = Number(value);
    return Number.isNaN(number) ? value : number;
  }
  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
    return a.localeCompare(b, "en", { numeric: true });
  }
  function sort(head) {
    const down = head.getAttribute("aria-sort") === "ascending" ? -1 : 1, column = head.cellIndex;
    const keyed = rows.map(row => [key(row, column), row]);
    keyed.sort(([a], [b]) => a === null || b === null ? (a === null) - (b === null) : down * compare(a, b));
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down > 0 ? "ascending" : "descending");
    body.append(...keyed.map(([, row]) => row));
  }

  for (const head of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(head));
    head.append(button);
  }
  let waits = 0;
  for (const change of ["input", "change"]) form.addEventListener(change, () => {
    clearTimeout(waits);
    waits = setTimeout(filter, 60);
  });
  form.addEventListener("reset", () => setTimeout(filter));
  form.addEventListener("submit", event => event.preventDefault());
  form.hidden = false;
  filter();  // after a reload the form still has its entries
}
