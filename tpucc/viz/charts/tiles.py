"""The tiles of a layer: its weight matrix cut to the matrix unit's size, how full each tile is, and when it is used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import cycle
from typing import assert_never

from tpucc.diagnostics import counted, listed, percent
from tpucc.isa.effects import effects
from tpucc.isa.program import LayerInfo, Program
from tpucc.lowering.tileprogram import TileProgram
from tpucc.values import dataclass
from tpucc.viz.charts.chart import WIDTH
from tpucc.viz.heading import EDGE, heading
from tpucc.viz.palette import Kind, ink_line
from tpucc.viz.svg import NOTHING, Markup, joined, kind_rect, label, number_text, picture, tag, title
from tpucc.viz.text import NORMAL, SMALL, broken, number, shown, text_width

LARGEST, NUMBERED, SMALLEST, SIDE, SIDEWAYS, GAP = 60.0, 24.0, 6.0, 300.0, 60.0, 28.0
FEW, TALL = 400, 18
"""A grid of as few tiles, and of as few rows and columns, has cells that are large enough for numbers, though it be higher for them."""
LINE = 16.0
MOST = 4096
"""Tiles that one grid may show."""
HIGHEST = 1400.0
"""Pixels that the picture may be high, unless one layer alone is higher."""
CANDIDATES, NAMED = 40, 3
"""Layers that are drawn at most, and those left out that are named."""
KEY = "tiles"


@dataclass(frozen=True, slots=True)
class Tile:
    """One tile of the grid: its index in weight memory, used rows and columns, and its places in the order of execution, from 1."""

    index: int
    rows: int
    columns: int
    turns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    """A drawn grid and its size."""

    markup: Markup
    width: float
    height: float


def tiles_svg(program: Program | TileProgram) -> str:
    """The grids of the layers, side by side: the largest that fit, or all; the subtitle says what is left out."""
    order, mxu = order_of(program), program.target.mxu
    sized = largest_layers(program)
    grids = {index: _grid(program.layers[index], mxu, order.get(index, ())) for index in sized[:CANDIDATES]}
    for count in range(len(grids), -1, -1):
        chosen = sorted(sized[:count])
        words = SUBTITLE + _left_out(program, chosen)
        head = heading(_title(program), words, (Kind.WEIGHTS,) if chosen else (), most=WIDTH - 2 * EDGE)
        places, width, height = _flow([grids[index] for index in chosen], EDGE + head.height + 10)
        if height <= HIGHEST or count <= 1:
            break
    parts = [
        tag("g", grids[index].markup, transform=f"translate({number_text(x)} {number_text(y)})")
        for index, (x, y) in zip(chosen, places, strict=True)
    ]
    return picture(KEY, _title(program), max(width, head.width + EDGE) + EDGE, height, head.markup, *parts)


def _flow(grids: Sequence[_Part], top: float) -> tuple[list[tuple[float, float]], float, float]:
    """Where each grid stands, the right end of all, and the height of the picture."""
    places = []
    x, y, row, width = EDGE, top, 0.0, 0.0
    for grid in grids:
        if x > EDGE and x + grid.width > WIDTH - EDGE:
            x, y, row = EDGE, y + row + GAP, 0.0
        places.append((x, y))
        x, row, width = x + grid.width + GAP, max(row, grid.height), max(width, x + grid.width)
    return places, width, y + row + EDGE


SUBTITLE = "The filled part of a tile is used, the rest is padding; the number is the tile's turn in its layer."


def largest_layers(program: Program | TileProgram) -> list[int]:
    """The layers with weights, those with the most first."""
    sizes = [(-layer.weights[0] * layer.weights[1], index) for index, layer in enumerate(program.layers) if layer.tile_fills]
    return [index for _, index in sorted(sizes)]


def _title(program: Program | TileProgram) -> str:
    """The tiles in weight memory: one that several layers use counts once."""
    used = {tile: rows * columns for layer in program.layers for tile, rows, columns in layer.tile_fills}
    count = len(used)
    name = program.title if isinstance(program, Program) else program.name
    if not count:
        return f"{name}: no layer has weights, so there are no tiles"
    return f"{name}: {counted(count, 'weight tile')}, {percent(sum(used.values()), count * program.target.mxu**2)} full"


def _left_out(program: Program | TileProgram, drawn: Sequence[int]) -> str:
    """A sentence about what isn't drawn, by name; empty if all is."""
    layers = program.layers
    others = [index for index in largest_layers(program) if index not in drawn]
    if not others:
        return ""
    seen = {tile for index in drawn if len(layers[index].tile_fills) <= MOST for tile, _, _ in layers[index].tile_fills}
    names = [shown(layers[index].name, 24) for index in sorted(others[:NAMED])]
    more = [counted(len(others) - NAMED, "other")] if len(others) > NAMED else []
    which = f"the {len(drawn)} largest of {len(drawn) + len(others):,} layers"
    return f" Drawn: {counted(len(seen), 'tile')}, of {which}; not {listed([*names, *more])}."


def order_of(program: Program | TileProgram) -> dict[int, tuple[int, ...]]:
    """For each layer the tiles in the order in which multiplies switch to them."""
    records = program.instructions
    touched = effects(records)
    if isinstance(program, TileProgram):
        chosen = touched.pops
        layers = records["layer"][chosen]
    elif isinstance(program, Program):
        chosen = touched.pushes
        layers = program.layer_of[chosen]
    else:
        assert_never(program)
    found: dict[int, list[int]] = defaultdict(list)
    for layer, tile in zip(layers.tolist(), records["index"][chosen].tolist(), strict=True):
        found[layer].append(tile)
    return {layer: tuple(tiles) for layer, tiles in found.items()}


def places_of(layer: LayerInfo, order: Sequence[int]) -> list[int]:
    """For each of these tiles its place in the layer's grid, row by row, or -1. Equal ones at several places take turns."""
    places: dict[int, list[int]] = defaultdict(list)
    for place, (index, _, _) in enumerate(layer.tile_fills):
        places[index].append(place)
    around = {index: cycle(own) for index, own in places.items()}
    return [next(around[index]) if index in around else -1 for index in order]


def _tiles(layer: LayerInfo, order: Sequence[int]) -> list[Tile]:
    """The layer's tiles, row by row of the grid."""
    turns: list[list[int]] = [[] for _ in layer.tile_fills]
    for turn, place in enumerate(places_of(layer, order), 1):
        if place >= 0:
            turns[place].append(turn)
    return [Tile(*fill, tuple(own)) for fill, own in zip(layer.tile_fills, turns, strict=True)]


def _grid(layer: LayerInfo, mxu: int, order: Sequence[int]) -> _Part:
    """One layer's grid with its name and axes, its upper left corner at the origin."""
    across = -(-layer.weights[1] // mxu)
    down = len(layer.tile_fills) // across
    numbered = len(layer.tile_fills) <= FEW and down <= TALL and across <= SIDE / NUMBERED
    cell = min(LARGEST, max(NUMBERED if numbered else SMALLEST, SIDE / max(down, across)))
    inputs, outputs = layer.weights
    facts = _facts(layer, mxu, order, _direction(layer, across, order) if cell < NUMBERED else "")
    left, upper = SIDEWAYS, NORMAL + 32 + LINE * len(facts)
    axis = [
        label(f"{outputs:,} outputs →", left, upper - 8, SMALL, "soft"),
        label(f"{inputs:,}", left - 8, upper + SMALL, SMALL, "soft", "end"),
    ]
    axis.append(label("inputs ↓", left - 8, upper + 2 * SMALL + 3, SMALL, "soft", "end"))
    name = [label(shown(layer.name), 0, NORMAL, NORMAL, font_weight="bold")]
    name += [label(text, 0, NORMAL + 18 + LINE * row, SMALL, "soft") for row, text in enumerate(facts)]
    if len(layer.tile_fills) > MOST:
        size = min(SIDE, SMALLEST * across), min(SIDE, SMALLEST * down)
        cells = joined([kind_rect(Kind.WEIGHTS, left, upper, *size), label(f"{down:,} × {across:,} tiles", left + 12, upper + 24, NORMAL)])
    else:
        size = cell * across, max(cell * down, 2.5 * SMALL)
        cells = joined(_cell(tile, mxu, place, across, cell, left, upper) for place, tile in enumerate(_tiles(layer, order)))
    words = max(*(text_width(text, SMALL) for text in facts), text_width(shown(layer.name), NORMAL, bold=True), left + 110)
    return _Part(joined([*name, *axis, cells]), max(left + size[0], words), upper + size[1])


def _direction(layer: LayerInfo, across: int, order: Sequence[int]) -> str:
    """In which direction the turns go, for a grid whose cells are too small for numbers."""
    places = {index: place for place, (index, _, _) in enumerate(layer.tile_fills)}
    if len(order) < 2 or order[0] not in places or order[1] not in places:
        return ""
    step = places[order[1]] - places[order[0]]
    return "column by column" if step == across else "row by row" if step == 1 else ""


def _facts(layer: LayerInfo, mxu: int, order: Sequence[int], direction: str) -> list[str]:
    """Lines about the layer: its tiles, how often each is loaded and in which direction, and how it was blocked."""
    used = sum(rows * columns for _, rows, columns in layer.tile_fills)
    words = [counted(len(layer.tile_fills), "tile"), f"{percent(used, len(layer.tile_fills) * mxu * mxu)} full"]
    if not order:
        words.append("kept from an earlier layer")
    elif len(order) != len(layer.tile_fills):
        words.append(f"loaded {number(round(len(order) / len(layer.tile_fills), 2))} times each")
    if direction:
        words.append(direction)
    return [", ".join(words), *broken(shown(layer.choice, 240), SMALL, SIDE + SIDEWAYS)]


def _cell(tile: Tile, mxu: int, place: int, across: int, cell: float, left: float, top: float) -> Markup:
    row, column = divmod(place, across)
    x, y, inner = left + column * cell, top + row * cell, cell - 2.0
    outline = tag("rect", attributes=ink_line("grid"), x=x, y=y, width=inner, height=inner)
    width, height = max(1.5, inner * tile.columns / mxu), max(1.5, inner * tile.rows / mxu)
    used = kind_rect(Kind.WEIGHTS, x, y, width, height, stroke_width=1)
    turns = ", ".join(map(str, tile.turns[:8])) + (", …" if len(tile.turns) > 8 else "")
    words = f"tile {tile.index:,} · {tile.rows} × {tile.columns} of {mxu} × {mxu} used · turn {turns or '–'}"
    turn = f"{tile.turns[0]:,}" if tile.turns else ""
    fits = cell >= SMALL + 6 and text_width(turn, SMALL) < inner - 2
    middle = _middle((width, height), inner, (text_width(turn, SMALL) + 2, SMALL + 2))
    text = label(turn, x + middle[0], y + middle[1] + 4, SMALL, "ink", "middle") if fits else NOTHING
    return tag("g", title(words), outline, used, text)


def _middle(used: tuple[float, float], whole: float, needed: tuple[float, float]) -> tuple[float, float]:
    """Where a number stands: in the middle of the used part, or beside or below it where that is too small."""
    fits = [have >= need for have, need in zip(used, needed, strict=True)]
    if all(fits):
        return used[0] / 2, used[1] / 2
    across, down = (min(max(whole / 2, have + need / 2), whole - need / 2) for have, need in zip(used, needed, strict=True))
    return (whole / 2 if fits[0] else across), (whole / 2 if fits[1] else down)
