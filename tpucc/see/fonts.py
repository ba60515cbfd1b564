"""The fonts of pictures and pages.

`text` measures with the widths of Helvetica, which Arial and Liberation Sans share. Where none of them is installed, as on many machines
with Linux, browsers take DejaVu Sans, which is a seventh wider. Pictures and pages ask for it in a smaller size, at which its texts are as
wide. A file of its own brings the rules along.
"""

from __future__ import annotations

_NARROWED = "'narrowed DejaVu Sans'"
SHARE = 86
"""The percentage of a size at which nine of ten texts in DejaVu Sans are as wide as `text` says, or narrower."""
_SHARES = {"normal": ("DejaVu Sans", SHARE), "bold": ("DejaVu Sans Bold", 82)}
"""The font of each weight, and this percentage for it."""

FONT = f"Helvetica, Arial, 'Liberation Sans', {_NARROWED}, sans-serif"
"""What pictures and pages ask for."""
RENDERING = "geometricPrecision"
"""How texts of pictures are drawn, so that they are as wide at each size of a picture: with hinting, letters are whole pixels wide, and a
seventh wider at some sizes."""


def font_faces() -> str:
    """CSS that defines the font in its smaller size."""
    return "".join(
        f"@font-face{{font-family:{_NARROWED};font-weight:{weight};src:local('{name}');size-adjust:{share}%}}\n"
        for weight, (name, share) in _SHARES.items()
    )


def font_rules() -> str:
    """CSS that defines `--sans`, the fonts of a page, and gives them to the pictures in it."""
    return f"{font_faces()}:root{{--sans:{FONT}}}\nsvg{{font-family:var(--sans);text-rendering:{RENDERING}}}"
