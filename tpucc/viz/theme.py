"""The palette as CSS variables: every page takes its colours from them.

A page is light or dark as the reader's system prefers, or as `data-theme` at its root says; on paper it is light. The variables are plain
colours, not `light-dark()`: scripts that paint on canvases read them with `getComputedStyle`, which would give them the function.
"""

from __future__ import annotations

from tpucc.viz.palette import INKS, KINDS, PAGE_INKS, WAVES, Ink, Kind


def theme() -> str:
    """CSS that defines the variables, and the colours of what the browser itself draws: fields, sliders, scroll bars."""
    colours = variables()
    light = "".join(f"--{name}:{colour.light};" for name, colour in colours.items())
    dark = "".join(f"--{name}:{colour.dark};" for name, colour in colours.items())
    return (
        f":root{{color-scheme:light;{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}\n"
        f"@media screen{{:root[data-theme=dark]{{color-scheme:dark;{dark}}}}}"
    )


def variables() -> dict[str, Ink]:
    """Colours by name: `matrix` and `matrix-line` for a kind, `row-0` and `row-0-line` for a row of the input, `ink` for an ink.

    `accent` is for what can be clicked and what has the focus.
    """
    pairs = [*KINDS.items(), *((f"row-{i}", wave) for i, wave in enumerate(WAVES))]
    fills = {str(name): Ink(colour.fill, colour.dark_fill) for name, colour in pairs}
    lines = {f"{name}-line": Ink(colour.line, colour.dark_line) for name, colour in pairs}
    return fills | lines | dict(INKS) | dict(PAGE_INKS) | {"accent": lines[f"{Kind.MATRIX}-line"]}
