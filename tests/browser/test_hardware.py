"""Registers of the hardware in the report's view of the machine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import run
from tests.support.machine import TWO_LAYERS
from tests.support.visits import settle

if TYPE_CHECKING:
    from tests.browser.conftest import OpenPage

pytestmark = [pytest.mark.browser, pytest.mark.long]


def test_the_registers_stand_beside_the_simulators(open_page: OpenPage, tmp_path: Path) -> None:
    """In the cycle that is shown, also on the way back."""
    pytest.importorskip("pyrtl")
    model, trace, written = (tmp_path / f"two.{suffix}" for suffix in ("tpu", "vcd", "html"))
    model.write_text(TWO_LAYERS, "utf-8")
    assert run("rtl", "run", model, "--target", "tiny", "--vcd", trace, "--quiet") == 0
    assert run("report", model, "--target", "tiny", "--vcd", trace, "-o", written, "--quiet") == 0
    page = open_page(written, "view=machine&instruction=20")
    shown = """() => Object.fromEntries([...document.querySelectorAll("[data-part] .hardware dt")].map((name) => [
      `${name.closest("[data-part]").dataset.part}: ${name.textContent}`, name.nextElementSibling.textContent]))"""
    settle(page)
    found = page.evaluate(shown)
    assert (found["activation: works"], found["matrix: works"], found["matrix: finished"]) == ("1", "0", "4")
    assert re.fullmatch(r"row 0:( −?\d+){4}", found["buffer: activation writes"])
    page.evaluate("location.hash = 'view=machine&instruction=0'")
    settle(page)
    found = page.evaluate(shown)
    assert (found["memory: works"], found["matrix: finished"], found["buffer: activation writes"]) == ("1", "0", "–")
    assert "56 cycles, 56 by the clock" in page.text_content(".hardware-words")
