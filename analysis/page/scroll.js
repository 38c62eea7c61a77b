// SPDX-License-Identifier: MIT
// Parts of a page that scroll sideways can be reached and scrolled with the keyboard (WCAG 2.1, 2.1.1).
"use strict";
const reach = () => {
  for (const part of document.querySelectorAll(".wide, .columns > div, .picture, .scrolls")) {
    if (part.scrollWidth > part.clientWidth || part.scrollHeight > part.clientHeight) part.tabIndex = 0;
    else part.removeAttribute("tabindex");
  }
};
reach();
addEventListener("resize", reach);
