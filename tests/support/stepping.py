"""Steps through the report's Machine view, and what the browser does for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

STEP = """async ([count, painted]) => {
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  await frame();
  await frame();
  const begin = performance.now();
  for (let step = 0; step < count; step++) {
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key: ">", bubbles: true }));
    if (painted) await frame();
  }
  if (painted) await frame();
  return performance.now() - begin;
}"""
"""Makes `count` steps, with a frame for each or without, and says how many milliseconds that took."""

Counted = dict[str, float]
"""Chromium's metrics of a page, by their names: counts, and times in seconds."""


@contextmanager
def counted(page: Page) -> Iterator[Counted]:
    """By how much the page's metrics grow until the end of the block; empty before."""
    session, found = page.context.new_cdp_session(page), Counted()
    session.send("Performance.enable")
    before = _metrics(session.send("Performance.getMetrics"))
    yield found
    found |= {name: value - before[name] for name, value in _metrics(session.send("Performance.getMetrics")).items()}
    session.detach()


def _metrics(answer: dict[str, list[dict[str, float]]]) -> Counted:
    return {str(metric["name"]): metric["value"] for metric in answer["metrics"]}
