# SPDX-License-Identifier: MIT
"""Pages in a real browser: Debian's Chromium without a window and without network access, driven by Selenium."""

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
            "host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        ):  # fmt: skip
            options.add_argument(f"--{word}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        # Given the driver's path, Selenium does not search for a driver. SE_OFFLINE keeps it from downloading one.
        self.driver = webdriver.Chrome(
            options=options, service=Service(DRIVER, env=os.environ | {"SE_OFFLINE": "true", "HOME": str(profile)})
        )
        self.driver.set_script_timeout(60)

    def command(self, name: str, **values: Any) -> Any:
        """A command of the browser's own protocol, which has functions that WebDriver lacks."""
        return self.driver.execute_cdp_cmd(name, values)

    def open(self, path: Path, width: int = 1280, dark: bool = False, script: bool = True) -> None:
        """Opens the page on a screen of `width` x 800 pixels. Up to a width of 500, the browser emulates a phone."""
        self.show(path.absolute().as_uri(), width, dark, script)

    def show(self, address: str, width: int = 1280, dark: bool = False, script: bool = True) -> None:
        """Opens an address as `open` opens a file; of other machines than this one none is found."""
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width <= 500}
        self.command("Emulation.setDeviceMetricsOverride", **size)
        self.command("Emulation.setEmulatedMedia", media="", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])  # fmt: skip
        self.command("Emulation.setScriptExecutionDisabled", value=not script)
        self.driver.get(address)

    def run(self, script: str, *values: Any) -> Any:
        """Runs a script and returns its result."""
        return self.driver.execute_script(script, *values)

    def whole(self, path: Path, width: int, dark: bool) -> int:
        """Opens the page, and asserts that every figure is drawn, that nothing is wider than the screen, that the
        colours are those asked for, and that the console is empty. Returns the number of figures.
        """
        self.driver.get_log("browser")
        self.open(path, width, dark)
        pictures = self.driver.execute_async_script(_PICTURES)
        assert all(picture["colours"] > 5 and picture["wide"] > 300 and picture["high"] > 80 for picture in pictures)
        assert self.run("return document.documentElement.scrollWidth") <= width
        assert (self.brightness() < 0.35) == dark
        assert self.driver.get_log("browser") == []
        return len(pictures)

    def pdf(self) -> bytes:
        """The page as a PDF, with the paper size of its style sheet."""
        return base64.b64decode(self.command("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"])

    def brightness(self) -> float:
        """Mean brightness of the visible part, from 0 (black) to 1 (white)."""
        import numpy as np
        from PIL import Image

        shown = base64.b64decode(self.command("Page.captureScreenshot")["data"])
        return float(np.asarray(Image.open(io.BytesIO(shown)).convert("L")).mean() / 255)

    def close(self) -> None:
        """Ends browser and driver."""
        self.driver.quit()


def needed() -> None:
    """Skips the test if there is no browser, and says how to install one."""
    if not (BROWSER and DRIVER):
        pytest.skip("no browser: apt-get install chromium chromium-driver")
