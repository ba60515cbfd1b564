"""Opens every page of the built site in a headless Chromium, wide and narrow.

No link is dead, no error is on the console, nothing is asked of another site, and no page is wider than its window. The playground, which
may ask for Pyodide elsewhere, has tests of its own. Where there is no Chromium, it says so and passes.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urldefrag, urljoin

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # the browser's driver is the tests' own
from tests.support.chromium import NoBrowserError, chromium  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SITE = ROOT / "build" / "site"
WIDTHS = (1280, 390)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def main() -> int:
    try:
        with chromium() as browser:
            return crawled(browser)
    except NoBrowserError as reason:
        print(f"the site was not crawled: {reason}", file=sys.stderr)
        return 0


def crawled(browser: Browser) -> int:
    """Serves the site and looks at it in both widths; prints the faults, and returns whether there are any."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    root = f"http://127.0.0.1:{server.server_port}/"
    faults = [fault for width in WIDTHS for fault in crawl(browser.new_page(viewport={"width": width, "height": 900}), root)]
    server.shutdown()
    for fault in faults:
        print(fault, file=sys.stderr)
    pages = len(list(SITE.rglob("*.html")))
    print(f"{pages} pages at {' and '.join(map(str, WIDTHS))} pixels: {len(faults)} faults")
    return 1 if faults else 0


def crawl(page: Any, root: str) -> Iterator[str]:
    """The faults of all pages that the first one leads to."""
    told = _listened(page, root)
    seen, left = {root}, [root]
    anchors: dict[str, set[str]] = {}
    links: list[tuple[str, str]] = []
    while left:
        place = left.pop()
        page.goto(place, wait_until="load")
        anchors[place] = set(page.eval_on_selector_all("[id]", "found => found.map(element => element.id)"))
        if not place.removeprefix(root).startswith("live/"):
            for link in _links(page, place, root):
                links.append((place, link))
                target = urldefrag(link)[0]
                if target.endswith((".html", "/")) and target not in seen and not target.startswith(f"{root}playground/"):
                    seen.add(target)
                    left.append(target)
            if page.evaluate("document.documentElement.scrollWidth > window.innerWidth + 1"):
                told.append("is wider than the window")
        yield from (f"{place.removeprefix(root)}: {what}" for what in told)
        told.clear()
    for place, link in links:
        target, part = urldefrag(link)
        if not _there(target, root) or (part and part not in anchors.get(target, {part})):
            yield f"{place.removeprefix(root)}: {link.removeprefix(root)} isn't there"


def _listened(page: Any, root: str) -> list[str]:
    """A list that fills with the page's own faults."""
    told: list[str] = []
    page.on("console", lambda said: told.append(f"{said.text} ({said.location.get('url')})") if _is_fault(said) else None)
    page.on("pageerror", lambda error: told.append(f"error: {error}"))
    page.on("request", lambda request: told.append(f"asks {request.url}") if not inside(request.url, root) else None)
    return told


def _is_fault(said: Any) -> bool:
    """Whether a line of the console is an error; a browser asks for an icon that a page alone doesn't have."""
    return said.type == "error" and not str(said.location.get("url")).endswith("/favicon.ico")


def _links(page: Any, place: str, root: str) -> list[str]:
    """The links of a page that stay on the site, whole."""
    found = page.eval_on_selector_all("a[href]", "found => found.map(element => element.getAttribute('href'))")
    return [link for target in found if (link := urljoin(place, target)).startswith(root)]


def _there(target: str, root: str) -> bool:
    path = SITE / unquote(target.removeprefix(root))
    return path.is_file() or (path / "index.html").is_file()


def inside(url: str, root: str) -> bool:
    """Whether a request stays on the site."""
    return url.startswith((root, "data:", "blob:", "about:"))


if __name__ == "__main__":
    sys.exit(main())
