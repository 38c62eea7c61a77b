// SPDX-License-Identifier: MIT
// The keyboard can reach and scroll the scrollable parts of a page (WCAG 2.1, 2.1.1). A table of few cells need not
// scroll: on a phone each of its rows is a block (style.css): the row's name, then a line per cell with the column's title.
"use strict";
const MOST_CELLS = 120;
for (const table of document.querySelectorAll(".wide table:not(#runs)")) {
  const [head, ...rows] = table.rows;
  if (rows.length * head.cells.length > MOST_CELLS) continue;
  table.classList.add("blocks");
  head.classList.add("titles");
  for (const row of rows) for (const cell of row.cells) {
    const isHeading = cell.cellIndex === 0 && !cell.classList.contains("n");
    if (!cell.textContent.trim()) cell.replaceChildren();  // for :empty in style.css
    if (!isHeading) cell.dataset.title = head.cells[cell.cellIndex].textContent;
  }
}
const reach = () => {
  for (const part of document.querySelectorAll(".wide, .columns > div, .picture, .scrolls")) {
    if (part.scrollWidth > part.clientWidth || part.scrollHeight > part.clientHeight) part.tabIndex = 0;
    else part.removeAttribute("tabindex");
  }
};
reach();
addEventListener("resize", reach);
