"""The tiles of a layer: its weight matrix cut to the matrix unit's size, how full each tile is, and when it is used."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import assert_never

from tpucc.diagnostics import counted, listed
from tpucc.explain.names import shortened, shown, whole
from tpucc.explain.quantities import number
from tpucc.explain.tilegrid import tile_grid
from tpucc.isa.effects import effects
from tpucc.isa.program import LayerInfo, Program
from tpucc.lowering.tileprogram import TileProgram
from tpucc.prose import percent
from tpucc.see.charts.chart import WIDTH
from tpucc.see.heading import EDGE, heading
from tpucc.see.palette import Kind, in_order, ink_line
from tpucc.see.svg import NOTHING, Drawn, Markup, joined, kind_rect, label, moved, picture, tag, title
from tpucc.see.text import NORMAL, SMALL, broken, text_width

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
MEANINGS = {Kind.WEIGHTS: "weights", Kind.HOST: "computed values that the host writes"}


def tiles_svg(program: Program | TileProgram) -> str:
    """The grids of the layers, side by side: those with the most tiles that fit, or all; the subtitle says what is left out."""
    order, mxu = order_of(program), program.target.mxu
    sized = largest_layers(program)
    kind = {index: kind_of_tiles(program, program.layers[index]) for index in sized[:CANDIDATES]}
    grids = {index: _grid(program.layers[index], mxu, order.get(index, ()), kind[index]) for index in kind}
    for count in range(len(grids), -1, -1):
        chosen = sorted(sized[:count])
        words = SUBTITLE + _shared(program) + _left_out(program, chosen)
        kinds = in_order(kind[index] for index in chosen)
        head = heading(_title(program), words, kinds, most=WIDTH - 2 * EDGE, meanings=MEANINGS)
        places, width, height = _flow([grids[index] for index in chosen], EDGE + head.height + 10)
        if height <= HIGHEST or count <= 1:
            break
    parts = [moved(*place, grids[index].markup) for index, place in zip(chosen, places, strict=True)]
    return picture(KEY, _title(program), max(width, head.width + EDGE) + EDGE, height, head.markup, *parts)


def _flow(grids: Sequence[Drawn], top: float) -> tuple[list[tuple[float, float]], float, float]:
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


def _shared(program: Program | TileProgram) -> str:
    """Where layers have equal tiles: what their counts add up to."""
    counts, distinct = sum(len(layer.tile_fills) for layer in program.layers), len(_used(program))
    if counts == distinct:
        return ""
    return f" The layers' counts add up to {counts:,}: equal tiles are stored once, and counted where they are used."


def largest_layers(program: Program | TileProgram) -> list[int]:
    """The layers with tiles, those with the most first; of as many, those with the most weights."""
    sized = [index for index, layer in enumerate(program.layers) if layer.tile_fills]
    return sorted(sized, key=lambda index: (-len(program.layers[index].tile_fills), -math.prod(program.layers[index].weights)))


def _title(program: Program | TileProgram) -> str:
    """The tiles in weight memory: one that several layers use counts once."""
    used = _used(program)
    count = len(used)
    name = program.title if isinstance(program, Program) else program.name
    if not count:
        return f"{name}: no layer has weights, so there are no tiles"
    held = sum(tile < len(program.tiles) for tile in used)
    parts = [counted(held, "weight tile")] if held else []
    parts += [f"{counted(count - held, 'tile')} that the host writes"] if count > held else []
    return f"{name}: {', '.join(parts)}, {percent(sum(used.values()), count * program.target.mxu**2)} full"


def kind_of_tiles(program: Program | TileProgram, layer: LayerInfo) -> Kind:
    """What the tiles of a layer hold: weights, or values that the host writes. They stand after all of weights."""
    return Kind.HOST if any(tile >= len(program.tiles) for tile, _, _ in layer.tile_fills) else Kind.WEIGHTS


def _used(program: Program | TileProgram) -> dict[int, int]:
    """The cells of each tile that hold weights; of one that several layers use, in the layer with the most."""
    used: dict[int, int] = {}
    for layer in program.layers:
        for (tile, _, _), cells in zip(layer.tile_fills, tile_grid(layer, program.target.mxu).used.tolist(), strict=True):
            used[tile] = max(cells, used.get(tile, 0))
    return used


def _left_out(program: Program | TileProgram, drawn: Sequence[int]) -> str:
    """A sentence about what isn't drawn, by name; empty if all is."""
    layers = program.layers
    others = [index for index in largest_layers(program) if index not in drawn]
    if not others:
        return ""
    seen = {tile for index in drawn if len(layers[index].tile_fills) <= MOST for tile, _, _ in layers[index].tile_fills}
    briefs = shortened([whole(layer.name) for layer in layers], 24)
    names = [briefs[index] for index in sorted(others[:NAMED])]
    more = [counted(len(others) - NAMED, "other")] if len(others) > NAMED else []
    total = f"{len(drawn) + len(others):,} layers"
    which = f"the {len(drawn)} of {total} that have the most tiles" if len(drawn) != 1 else f"the one of {total} that has the most tiles"
    return f" Drawn: {which}, {counted(len(seen), 'tile')} in all. Not drawn: {listed([*names, *more])}."


def order_of(program: Program | TileProgram) -> dict[int, tuple[int, ...]]:
    """For each layer the tiles in the order in which multiplies switch to them."""
    records = program.instructions
    touched = effects(records)
    if isinstance(program, TileProgram):
        chosen, layers = touched.pops, records["layer"]
    elif isinstance(program, Program):
        chosen, layers = touched.pushes, program.layer_of
    else:
        assert_never(program)
    found: dict[int, list[int]] = defaultdict(list)
    for layer, tile in zip(layers[chosen].tolist(), records["index"][chosen].tolist(), strict=True):
        found[layer].append(tile)
    return {layer: tuple(tiles) for layer, tiles in found.items()}


def places_of(layer: LayerInfo, order: Sequence[int]) -> list[int]:
    """For each of these tiles its place in the layer's grid, row by row, or -1. Equal ones at several places take turns."""
    places: dict[int, list[int]] = defaultdict(list)
    for place, (index, _, _) in enumerate(layer.tile_fills):
        places[index].append(place)
    around = {index: cycle(own) for index, own in places.items()}
    return [next(around[index]) if index in around else -1 for index in order]


def _grid(layer: LayerInfo, mxu: int, order: Sequence[int], kind: Kind) -> Drawn:
    """One layer's grid with its name and axes, its upper left corner at the origin. `kind` is what its tiles hold."""
    across = -(-layer.weights[1] // mxu)
    down = len(layer.tile_fills) // across
    numbered = len(layer.tile_fills) <= FEW and down <= TALL and across <= SIDE / NUMBERED
    cell = min(LARGEST, max(NUMBERED if numbered else SMALLEST, SIDE / max(down, across)))
    inputs, outputs = layer.weights
    places = places_of(layer, order)
    facts = _facts(layer, mxu, places, _direction(places, across) if cell < NUMBERED else "")
    left, upper = SIDEWAYS, NORMAL + 32 + LINE * len(facts)
    axis = [
        label(f"{outputs:,} outputs →", left, upper - 8, SMALL, "soft"),
        label(f"{inputs:,}", left - 8, upper + SMALL, SMALL, "soft", "end"),
        label("inputs ↓", left - 8, upper + 2 * SMALL + 3, SMALL, "soft", "end"),
    ]
    name = [label(shown(layer.name), 0, NORMAL, NORMAL, font_weight="bold")]
    name += [label(text, 0, NORMAL + 18 + LINE * row, SMALL, "soft") for row, text in enumerate(facts)]
    if len(layer.tile_fills) > MOST:
        size = min(SIDE, SMALLEST * across), min(SIDE, SMALLEST * down)
        cells = joined([kind_rect(kind, left, upper, *size), label(f"{down:,} × {across:,} tiles", left + 12, upper + 24, NORMAL)])
    else:
        size = cell * across, max(cell * down, 2.5 * SMALL)
        cells = joined(_cells(layer, mxu, places, kind, cell, left, upper))
    words = max(*(text_width(text, SMALL) for text in facts), text_width(shown(layer.name), NORMAL, bold=True), left + 110)
    return Drawn(joined([*name, *axis, cells]), max(left + size[0], words), upper + size[1])


def _direction(places: Sequence[int], across: int) -> str:
    """In which direction the turns go, by the places of the first two; for a grid whose cells are too small for numbers."""
    if len(places) < 2 or -1 in places[:2]:
        return ""
    step = places[1] - places[0]
    return "column by column" if step == across else "row by row" if step == 1 else ""


def _facts(layer: LayerInfo, mxu: int, places: Sequence[int], direction: str) -> list[str]:
    """Lines about the layer: its tiles, how often each is loaded and in which direction, and how it was blocked. `places` are those of the
    turns, as `places_of` gives them."""
    grid, count = tile_grid(layer, mxu), len(layer.tile_fills)
    words = [counted(count, "tile"), f"{percent(int(grid.used.sum()), count * mxu * mxu)} full"]
    words += [f"{grid.matrices:,} matrices, one below the other"] if grid.matrices > 1 else []
    words += [f"{grid.groups:,} groups with zeros between them"] if grid.groups > 1 else []
    words += [text for text in (_loads(layer, places), direction) if text]
    return [line for text in (", ".join(words), shown(layer.choice, 240)) for line in broken(text, SMALL, SIDE + SIDEWAYS)]


def _loads(layer: LayerInfo, places: Sequence[int]) -> str:
    """How often the tiles are loaded, where it isn't once each. Tiles of nothing but zeros are left out."""
    if not places:
        return "kept from an earlier layer"
    loaded = sum(place >= 0 for place in {*places})
    times = number(round(len(places) / max(1, loaded), 2))
    some = f"{loaded:,} of them loaded, the others are zeros" if loaded < len(layer.tile_fills) else ""
    often = f"loaded {times} times each in all" if times != "1" else ""
    return ", ".join(text for text in (some, often) if text)


def _cells(layer: LayerInfo, mxu: int, places: Sequence[int], kind: Kind, cell: float, left: float, top: float) -> Iterator[Markup]:
    """The layer's tiles, row by row of the grid: the used part of each, its words, and its first turn in the order of execution."""
    turns: list[list[int]] = [[] for _ in layer.tile_fills]
    for turn, place in enumerate(places, 1):
        if place >= 0:
            turns[place].append(turn)
    grid, across, inner = tile_grid(layer, mxu), -(-layer.weights[1] // mxu), cell - 2.0
    columns = (column.tolist() for column in (grid.matrix, grid.first_input, grid.first_output, grid.used))
    for place, ((index, rows, wide), own, matrix, k, n, used) in enumerate(zip(layer.tile_fills, turns, *columns, strict=True)):
        x, y = left + place % across * cell, top + place // across * cell
        outline = tag("rect", attributes=ink_line("grid"), x=x, y=y, width=inner, height=inner)
        width, height = max(1.5, inner * wide / mxu), max(1.5, inner * rows / mxu)
        filled = kind_rect(kind, x, y, width, height, stroke_width=1) if used else NOTHING
        stack = f"matrix {matrix + 1:,} of {grid.matrices:,} · " if grid.matrices > 1 else ""
        name = f"{stack}rows {k:,}–{k + rows - 1:,} and columns {n:,}–{n + wide - 1:,}"
        taken = ", ".join(map(str, own[:8])) + (", …" if len(own) > 8 else "")
        words = f"tile {index:,} · {name} · {percent(used, mxu * mxu)} full · turn {taken or '–'}"
        turn_text = f"{own[0]:,}" if own else ""
        size = text_width(turn_text, SMALL)
        middle = _middle((width, height), inner, (size + 2, SMALL + 2))
        fits = cell >= SMALL + 6 and size < inner - 2
        text = label(turn_text, x + middle[0], y + middle[1] + 4, SMALL, "ink", "middle") if fits else NOTHING
        yield tag("g", title(words), outline, filled, text)


def _middle(used: tuple[float, float], whole: float, needed: tuple[float, float]) -> tuple[float, float]:
    """Where a number stands: in the middle of the used part, or beside or below it where that is too small."""
    fits = [have >= need for have, need in zip(used, needed, strict=True)]
    if all(fits):
        return used[0] / 2, used[1] / 2
    across, down = (min(max(whole / 2, have + need / 2), whole - need / 2) for have, need in zip(used, needed, strict=True))
    return (whole / 2 if fits[0] else across), (whole / 2 if fits[1] else down)
