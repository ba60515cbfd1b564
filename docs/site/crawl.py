"""Opens every page of the built site in a headless Chromium, wide and narrow: no dead link, no error on the console, no request to elsewhere, and
nothing that makes a page wider than its window. Says so and passes where there is no Chromium.
"""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlparse

SITE = Path(__file__).resolve().parents[2] / "build" / "site"
WIDTHS = (1280, 390)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def main() -> int:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        chromium = None
    if chromium is None:
        print("the site was not crawled: there is no Chromium with playwright here", file=sys.stderr)
        return 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    root = f"http://127.0.0.1:{server.server_port}/"
    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-background-networking"])
        faults = [fault for width in WIDTHS for fault in crawl(browser.new_page(viewport={"width": width, "height": 900}), root)]
        browser.close()
    server.shutdown()
    for fault in faults:
        print(fault, file=sys.stderr)
    pages = len(list(SITE.rglob("*.html")))
    print(f"{pages} pages at {' and '.join(map(str, WIDTHS))} pixels: {len(faults)} faults")
    return 1 if faults else 0


def crawl(page: Any, root: str) -> Iterator[str]:
    """The faults of all pages that the first one leads to."""
    told: list[str] = []
    page.on("console", lambda message: told.append(f"console: {message.text} ({message.location.get('url')})") if message.type == "error" else None)
    page.on("pageerror", lambda error: told.append(f"error: {error}"))
    page.on("request", lambda request: told.append(f"asks {request.url}") if not inside(request.url, root) else None)
    seen, left = {root}, [root]
    anchors: dict[str, set[str]] = {}
    links: list[tuple[str, str]] = []
    while left:
        place = left.pop()
        answer = page.goto(place, wait_until="load")
        if answer is None or answer.status != 200:
            yield f"{place}: not found"
            continue
        anchors[place] = set(page.eval_on_selector_all("[id]", "found => found.map(element => element.id)"))
        if place.removeprefix(root).startswith("live/"):
            continue
        wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        if wide > 1:
            told.append(f"{wide} pixels wider than the window")
        for target in page.eval_on_selector_all("a[href]", "found => found.map(element => element.getAttribute('href'))"):
            link, part = urldefrag(urljoin(place, target))
            if not link.startswith(root):
                continue
            links.append((place, f"{link}#{part}"))
            if link not in seen and link.endswith((".html", "/")):
                seen.add(link)
                left.append(link)
            elif not link.endswith((".html", "/")) and not (SITE / unquote(urlparse(link).path.lstrip("/"))).exists():
                yield f"{place}: {target} isn't there"
        yield from (f"{place.removeprefix(root)}: {what}" for what in told)
        told.clear()
    for place, link in links:
        target, part = urldefrag(link)
        if part and part not in anchors.get(target, {part}):
            yield f"{place.removeprefix(root)}: {link.removeprefix(root)} has no such part"


def inside(url: str, root: str) -> bool:
    """Whether a request stays on the site."""
    return url.startswith((root, "data:", "blob:", "about:"))


if __name__ == "__main__":
    sys.exit(main())
