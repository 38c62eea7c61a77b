# SPDX-License-Identifier: MIT
"""Pages in a real browser: Debian's Chromium without a window and without network access, driven by Selenium.

`Browser` opens a page on a screen of any size, light or dark. Its methods read the console's messages, the
figures' sizes and numbers of colours and the page's width, and take screenshots and PDFs.
"""

from __future__ import annotations

import base64
import io
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")

# Draws each visible figure's image on a canvas and counts its colours: an empty image has one. -1 means that the image
# cannot be decoded.
_PICTURES = """
const done = arguments[arguments.length - 1];
const shown = [...document.querySelectorAll(".picture svg")].filter(svg => svg.getClientRects().length);
Promise.all(shown.map(async svg => {
  const box = svg.getBoundingClientRect(), image = new Image(), canvas = document.createElement("canvas");
  image.src = svg.querySelector("image").href.baseVal;
  let colours = 0;
  try {
    await image.decode();
    canvas.width = 300; canvas.height = 200;
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0, 300, 200);
    const data = new Uint32Array(context.getImageData(0, 0, 300, 200).data.buffer);
    colours = new Set(data).size;
  } catch (error) { colours = -1; }
  return { name: svg.getAttribute("aria-label"), wide: box.width, high: box.height, colours: colours };
})).then(done);
"""


class Browser:
    """One window. Closed by `close`."""

    def __init__(self, profile: Path) -> None:
        from selenium import webdriver
        from selenium.webdriver.chrome.options import Options
        from selenium.webdriver.chrome.service import Service

        assert BROWSER
        assert DRIVER
        options = Options()
        options.binary_location = BROWSER
        for word in (
            "headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "disable-background-networking",
            "disable-component-update", "no-first-run", "hide-scrollbars", f"user-data-dir={profile}",
            "host-resolver-rules=MAP * ~NOTFOUND",
        ):  # fmt: skip
            options.add_argument(f"--{word}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        # Given the driver's path, Selenium does not search for a driver. SE_OFFLINE keeps it from downloading one.
        self.driver = webdriver.Chrome(
            options=options, service=Service(DRIVER, env=os.environ | {"SE_OFFLINE": "true", "HOME": str(profile)})
        )
        self.driver.set_script_timeout(60)
        self.width = 0  # of the screen, pixels

    def command(self, name: str, **values: Any) -> Any:
        """A command of the browser's own protocol, which has functions that WebDriver lacks."""
        return self.driver.execute_cdp_cmd(name, values)

    def open(self, path: Path, width: int = 1280, dark: bool = False, script: bool = True) -> None:
        """Opens the page on a screen of `width` x 800 pixels. Up to a width of 500, the browser emulates a phone."""
        phone, self.width = width <= 500, width
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=phone)
        self.command("Emulation.setEmulatedMedia", media="", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])  # fmt: skip
        self.command("Emulation.setScriptExecutionDisabled", value=not script)
        self.driver.get(path.absolute().as_uri())

    def run(self, script: str, *values: Any) -> Any:
        """Runs a script and returns its result."""
        return self.driver.execute_script(script, *values)

    def errors(self) -> list[str]:
        """All messages of the console since the last call, each with its level."""
        return [f"{entry['level']}: {entry['message']}" for entry in self.driver.get_log("browser")]

    def pictures(self) -> list[dict[str, Any]]:
        """For each visible figure: name, width and height on the page, and number of colours (-1: not a picture)."""
        return self.driver.execute_async_script(_PICTURES)

    def overflow(self) -> int:
        """By how many pixels the page is wider than the screen."""
        return self.run("return document.documentElement.scrollWidth") - self.width

    def screenshot(self, whole: bool = False) -> bytes:
        """PNG of the visible part, or of the whole page."""
        return base64.b64decode(self.command("Page.captureScreenshot", captureBeyondViewport=whole)["data"])

    def pdf(self) -> bytes:
        """The page as a PDF, with the paper size of its style sheet."""
        return base64.b64decode(self.command("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"])

    def brightness(self) -> float:
        """Mean brightness of the visible part, from 0 (black) to 1 (white)."""
        import numpy as np
        from PIL import Image

        return float(np.asarray(Image.open(io.BytesIO(self.screenshot())).convert("L")).mean() / 255)

    def close(self) -> None:
        """Ends browser and driver."""
        self.driver.quit()


def needed() -> None:
    """Skips the test if there is no browser, and says how to install one."""
    if not (BROWSER and DRIVER):
        pytest.skip("no browser: apt-get install chromium chromium-driver")
