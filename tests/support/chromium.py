"""A headless Chromium for tests and screenshots: the one of the system, never a downloaded one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

VARIABLE = "TPUCC_CHROMIUM"
COMMANDS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
"""The shell, which has no windows to draw, is first: it takes a quarter less of the processors' time for the same pages."""
VIEWPORT = (1280, 800)
"""Width and height of a page in CSS pixels: the smallest that the report is made for."""


class NoBrowserError(Exception):
    """There is nothing to drive; the message says how to get it."""


def find_chromium(environment: Mapping[str, str] = os.environ) -> str:
    """The path of a Chromium: `TPUCC_CHROMIUM` where it is set, else the first of `COMMANDS` on the PATH.

    Raises FileNotFoundError when the variable names no program, and NoBrowserError when it isn't set and none is found.
    """
    path = environment.get("PATH")
    if chosen := environment.get(VARIABLE):
        if (found := shutil.which(chosen, path=path)) is None:
            raise FileNotFoundError(f"{VARIABLE} names no program: {chosen}")
        return found
    candidates = (shutil.which(command, path=path) for command in COMMANDS)
    if (found := next((path for path in candidates if path), None)) is None:
        raise NoBrowserError(
            f"no Chromium on the PATH: install one (Debian: apt-get install chromium-headless-shell), or name one in {VARIABLE}"
        )
    return found


@contextmanager
def chromium(*switches: str) -> Iterator[Browser]:
    """A running browser, with `switches` of its command line. Raises NoBrowserError without a Chromium or without Playwright.

    Playwright's own default leaves Chromium's sandbox off, without which it doesn't start as root and in most containers; it only ever
    opens files that the caller has made.
    """
    program = find_chromium()
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError as error:
        raise NoBrowserError("Playwright is not installed: pip install -e '.[browser]'") from error
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(switches))
        yield browser
        browser.close()
