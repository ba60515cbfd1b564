"""The variables of the pages: the palette's colours in both themes, and all that style sheets and scripts ask for."""

from __future__ import annotations

import re
from pathlib import Path

import tpucc
from tests.support.cases import each
from tpucc.see.palette import INKS, KINDS, PAGE_INKS, SOURCE_INKS, VARIABLES, WAVES, Kind, theme

PACKAGE = Path(tpucc.__file__).parent
SHEETS = sorted(PACKAGE.glob("**/*.css"))
SCRIPTS = sorted(PACKAGE.glob("see/page/js/*.js"))


def blocks() -> list[tuple[str, dict[str, str]]]:
    """Selector (with the media query that it stands in) and declarations of each block."""
    found = re.findall(r"^(.*?)\{((?:[-\w]+:[^;{}]+;?)+)\}", theme(), re.MULTILINE)
    return [(where, dict(re.findall(r"([-\w]+):([^;]+)", body))) for where, body in found if "color-scheme" in body]


def test_light_is_the_default_and_on_screens_alone_it_is_dark_by_preference_or_by_choice() -> None:
    (anywhere, light), (preferred, dark), (chosen, same) = blocks()
    assert anywhere == ":root"
    assert preferred == "@media screen and (prefers-color-scheme:dark){:root:not([data-theme=light])"
    assert chosen == "@media screen{:root[data-theme=dark]"
    assert (light["color-scheme"], dark["color-scheme"]) == ("light", "dark")
    assert dark == same
    assert list(light) == list(dark)


def test_the_variables_have_the_colours_of_the_palette() -> None:
    light, dark, _ = (found for _, found in blocks())
    weights = KINDS[Kind.WEIGHTS]
    assert (light["--weights"], light["--weights-line"]) == (weights.fill, weights.line)
    assert (dark["--weights"], dark["--weights-line"]) == (weights.dark_fill, weights.dark_line)
    assert (light["--row-5"], dark["--row-5-line"]) == (WAVES[5].fill, WAVES[5].dark_line)
    assert (light["--accent"], dark["--accent"]) == (KINDS[Kind.MATRIX].line, KINDS[Kind.MATRIX].dark_line)
    assert (light["--soft"], dark["--soft"]) == (INKS["soft"].light, INKS["soft"].dark)
    single = len(INKS) + len(PAGE_INKS) + len(SOURCE_INKS) + 1
    assert len(light) == 1 + 2 * len(KINDS) + 2 * len(WAVES) + single, "no name stands for two colours"


def test_values_are_colours_that_a_canvas_takes() -> None:
    values = [value for _, found in blocks() for name, value in found.items() if name != "color-scheme"]
    assert [value for value in values if not re.fullmatch(r"#[0-9a-f]{6}", value)] == []


@each(SHEETS)
def test_style_sheets_have_no_colours_of_their_own(sheet: Path) -> None:
    """But for shadows, which are black that lets light through."""
    text = sheet.read_text("utf-8")
    without_shadows = re.sub(r"box-shadow:[^;}]*", "", text)
    assert re.findall(r"#[0-9a-fA-F]{3,8}(?=[;\s,)])|\b(?:rgba?|hsla?|light-dark)\(", without_shadows) == []


@each(SHEETS)
def test_style_sheets_ask_for_variables_that_are_there(sheet: Path) -> None:
    text = sheet.read_text("utf-8")
    own = set(re.findall(r"--([-\w]+):", text)) | {
        "fill",
        "line",
        "share",
        "least",
        "sans",
        "mono",
    }  # scripts set the first four at elements
    used = set(re.findall(r"var\(--([-\w]+)", text))
    assert used
    assert used - own - set(VARIABLES) == set()


def test_scripts_that_paint_ask_for_variables_that_are_there() -> None:
    texts = [path.read_text("utf-8") for path in SCRIPTS]
    used = {name for text in texts for name in re.findall(r'colours\.of\("([-\w]+)"\)', text)}
    assert {"ink", "soft", "band", "alarm"} <= used
    assert used - set(VARIABLES) == set()
