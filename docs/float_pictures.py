"""Pictures of floats: the bits of three formats, and the all-reduce of eight cores."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tpucc.see.palette import WAVE_RULES, Kind, ink_fill, style_sheet, wave_paint
from tpucc.see.svg import Markup, kind_rect, label, line, number_text, picture, tag
from tpucc.see.text import LARGE, NORMAL, SMALL

MARGIN = 24.0
FORMATS = (("float32", 8, 23), ("bfloat16", 8, 7), ("float16", 5, 10))
"""Names, bits of the exponent, bits of the fraction."""
BIT, BITS_LEFT, BITS_TOP, BITS_HIGH = 18.0, 118.0, 92.0, 56.0
PARTS = (("sign", 1), ("exponent", 0), ("fraction", 2))
"""What a number consists of, each with a colour."""


def bits_svg() -> str:
    """The bits of float32, bfloat16 and float16, one below the other."""
    head = label("Three formats of floats", MARGIN, 34, LARGE, font_weight="bold")
    says = label("bfloat16 is the upper half of float32: the same exponent, fewer bits of the fraction.", MARGIN, 56, NORMAL, "soft")
    width, height = BITS_LEFT + 32 * BIT + MARGIN, BITS_TOP + len(FORMATS) * BITS_HIGH
    style = tag("style", Markup(style_sheet(WAVE_RULES)))
    return picture("float-bits", "The bits of float32, bfloat16 and float16", width, height, style, head, says, *_formats())


def _formats() -> Iterator[Markup]:
    for row, (name, exponent, fraction) in enumerate(FORMATS):
        y = BITS_TOP + row * BITS_HIGH
        yield label(name, MARGIN, y + 15, NORMAL, font_weight="bold")
        first = 0
        for (part, colour), count in zip(PARTS, (1, exponent, fraction), strict=True):
            x = BITS_LEFT + first * BIT
            for bit in range(count):
                yield tag("rect", attributes=wave_paint(colour), x=x + bit * BIT, y=y, width=BIT - 2, height=20, rx=3)
            words = f"{count} bits" if row else part if count == 1 else f"{part}, {count} bits"
            if count > 1 or not row:
                yield label(words, x + count * BIT / 2 - 1, y + 35, SMALL, "soft", "middle")
            first += count


CORES = 8
CORE_WIDE, CORE_GAP, CORE_LEFT, CORE_TOP, STEP_HIGH = 92.0, 12.0, 104.0, 104.0, 110.0
BAR_HIGH, WORDS_HIGH = 20.0, 24.0


def halving_svg() -> str:
    """Recursive halving among eight cores: what each is responsible for, and which gradients are in its sums."""
    title = "All-reduce among eight cores by recursive halving"
    head = label(title, MARGIN, 34, LARGE, font_weight="bold")
    says = "A bar is a core's gradient in eighths. It is responsible for the coloured ones, half of which it sends along the line."
    width = CORE_LEFT + CORES * (CORE_WIDE + CORE_GAP) - CORE_GAP + MARGIN
    height = CORE_TOP + 3 * STEP_HIGH + BAR_HIGH + WORDS_HIGH + 24
    parts = head, label(says, MARGIN, 56, NORMAL, "soft"), *_cores(), *_steps()
    return picture("halving", f"{title}. {says}", width, height, *parts)


def _cores() -> Iterator[Markup]:
    for core in range(CORES):
        yield label(f"core {core}", _left(core) + CORE_WIDE / 2, CORE_TOP - 12, NORMAL, anchor="middle", font_weight="bold")


def _steps() -> Iterator[Markup]:
    spans = [(0, CORES)] * CORES
    sums = [[core] for core in range(CORES)]
    yield from _row(0, "before", spans, sums)
    for step, distance in enumerate((4, 2, 1)):
        yield from _exchange(step, distance)
        spans = [_half(span, bool(core & distance)) for core, span in enumerate(spans)]
        sums = [sorted(sums[core] + sums[core ^ distance]) for core in range(CORES)]
        yield from _row(step + 1, f"{distance} apart", spans, sums)


def _half(span: tuple[int, int], upper: bool) -> tuple[int, int]:
    middle = sum(span) // 2
    return (middle, span[1]) if upper else (span[0], middle)


def _left(core: int) -> float:
    return CORE_LEFT + core * (CORE_WIDE + CORE_GAP)


def _row(step: int, words: str, spans: list[tuple[int, int]], sums: list[list[int]]) -> Iterator[Markup]:
    """One bar a core, and below it what its sums consist of."""
    y, wide = CORE_TOP + step * STEP_HIGH, CORE_WIDE / CORES
    yield label(words, MARGIN, y + 15, NORMAL)
    for core, (start, stop) in enumerate(spans):
        for part in range(CORES):
            kind = Kind.VECTOR if start <= part < stop else Kind.MOVE
            yield kind_rect(kind, _left(core) + part * wide, y, wide - 1.5, BAR_HIGH, rx=2)
        yield label(tree(sums[core]), _left(core) + CORE_WIDE / 2, y + BAR_HIGH + 17, SMALL, "soft", "middle")


def tree(cores: list[int]) -> str:
    """The sum over cores as it is added: `(0+4)+(2+6)`; of all eight only the words."""
    if len(cores) == CORES:
        return "all eight"
    if len(cores) == 1:
        return str(cores[0])
    pairs = [f"{first}+{first + CORES // 2}" for first in cores if first < CORES // 2]
    return pairs[0] if len(pairs) == 1 else "+".join(f"({pair})" for pair in pairs)


def _exchange(step: int, distance: int) -> Iterator[Markup]:
    """From each core to its partner, between two rows of bars."""
    y = CORE_TOP + step * STEP_HIGH + BAR_HIGH + WORDS_HIGH
    end = CORE_TOP + (step + 1) * STEP_HIGH - 4
    for core in range(CORES):
        start, to = _left(core) + CORE_WIDE / 2, _left(core ^ distance) + CORE_WIDE / 2
        yield line(start, y, to, end, "soft", stroke_width=1.2)
        along = math.atan2(end - y, to - start)
        corners = [(to, end)] + [(to - 9 * math.cos(along + turn), end - 9 * math.sin(along + turn)) for turn in (-0.35, 0.35)]
        yield tag("polygon", attributes=ink_fill("soft"), points=" ".join(f"{number_text(px)},{number_text(py)}" for px, py in corners))
