"""The fonts of pictures and pages.

`text` measures with the widths of Helvetica, which Arial and Liberation Sans share. Where none of them is installed, as on many machines
with Linux, browsers take DejaVu Sans, which is a seventh wider. Pages ask for it in a smaller size, at which its texts are as wide.
"""

from __future__ import annotations

FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"
"""What pictures ask for. An SVG file has no fonts of its own."""

_NARROWED = "'narrowed DejaVu Sans'"
_SHARES = {"normal": ("DejaVu Sans", 86), "bold": ("DejaVu Sans Bold", 82)}
"""For each weight the font, and the percentage of its size at which nine of ten texts are as wide as `text` says, or narrower."""


def font_rules() -> str:
    """CSS that defines `--sans`, the fonts of a page, and gives them to the pictures in it.

    Their texts are as wide at each size of a picture: with hinting, letters are whole pixels wide, and a seventh wider at some sizes.
    """
    faces = "".join(
        f"@font-face{{font-family:{_NARROWED};font-weight:{weight};src:local('{name}');size-adjust:{share}%}}\n"
        for weight, (name, share) in _SHARES.items()
    )
    family = f":root{{--sans:{FONT.replace('sans-serif', f'{_NARROWED}, sans-serif')}}}"
    return f"{faces}{family}\nsvg{{font-family:var(--sans);text-rendering:geometricPrecision}}"
