"""The life of a byte: every value on its way is the machine's, and changes with the element; what isn't in its field has no part in it."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support.cases import each, one_of
from tpucc.explain.changes import TILES, At
from tpucc.explain.life import Life, Route, life
from tpucc.explain.recording import first_part
from tpucc.explain.timed import Timed
from tpucc.interop.programs import folder
from tpucc.runtime.batches import Arrays
from tpucc.runtime.check import calibrated_inputs, random_inputs
from tpucc.sim.interpret import Interpreter

FOLLOWED = (
    "02_iris",
    "04_digits_mlp",
    "05_digits_cnn",
    "06_digits_lstm",
    "08_fashion_cnn",
    "13_quadric",
    "gallery/bert_tiny",
    "gallery/tcn",
)
"""Dense layers, convolutions, steps of a recurrence, pixels that the host packs, steps of the host, computed weights."""


SMALL = {"params": {"batch": 4}}


@cache
def lived(stem: str) -> tuple[Timed, Arrays, Life]:
    exe = tpucc.compile(folder() / f"{stem}.tpu", **(SMALL if "_digits_" in stem else {}))
    assert exe.compilation is not None
    runtime, given = Timed(exe.runtime.program), calibrated_inputs(exe.compilation)
    found = life(exe.compilation, runtime)
    assert isinstance(found, Life)
    return runtime, first_part(runtime, runtime.accepted(random_inputs(runtime) if given is None else given))[0], found


def at(machine: Interpreter, place: At) -> int:
    """What the machine has in a place now."""
    if place.memory != TILES:
        return int(machine.memories[place.memory][place.row, place.lane])
    return int(machine.memories.tiles.reshape(-1, machine.program.target.mxu)[place.row, place.lane])


def on_the_way(runtime: Timed, route: Route, inputs: Arrays) -> list[tuple[int | None, int]]:
    """What each move reads and writes in a run of the whole program, instruction by instruction."""
    machine, moves, found = runtime.begun(inputs), {move.instruction: move for move in route.moves}, list[tuple[int | None, int]]()
    for index in range(len(runtime.program.instructions)):
        move = moves.get(index)
        before = None if move is None or move.source is None else at(machine, move.source)
        machine.execute(index)
        if move is not None:
            found.append((before, at(machine, move.target)))
    return found


def changed(inputs: Arrays, name: str, index: tuple[int, ...], value: float = 0) -> Arrays:
    other = inputs[name].copy()
    other[index] = value
    return {**inputs, name: other}


@pytest.mark.parametrize("stem", one_of(4, FOLLOWED))
def test_each_value_is_the_machines_and_changes_with_the_element(stem: str) -> None:
    runtime, inputs, found = lived(stem)
    route = found.route
    as_it_is = on_the_way(runtime, route, inputs)
    assert as_it_is == [(move.source and move.source.value, move.target.value) for move in route.moves]
    other = on_the_way(runtime, route, changed(inputs, route.start.name, route.start.index))
    for (read, written), (read_then, written_then), move in zip(as_it_is, other, route.moves, strict=True):
        assert written != written_then, move
        assert read is None or read != read_then, move
    for move, after in pairwise(route.moves):
        assert after.source is not None
        assert move.target[:3] == after.source[:3], "it is read where it was written"


@pytest.mark.parametrize("stem", one_of(2, ("04_digits_mlp", "05_digits_cnn", "06_digits_lstm")))
def test_another_item_has_no_part_in_it(stem: str) -> None:
    runtime, inputs, found = lived(stem)
    name = found.route.start.name
    index = (1, *found.route.start.index[1:])
    other = changed(inputs, name, index, 1.0 - float(inputs[name][index]))
    assert on_the_way(runtime, found.route, other) == on_the_way(runtime, found.route, inputs)


def test_what_is_not_in_a_field_has_no_part_in_the_layers_result() -> None:
    """All pixels outside of it at once, and those in it at once."""
    runtime, inputs, found = lived("05_digits_cnn")
    route, fields = found.route, found.fields
    assert fields is not None
    names = [layer.name for layer in runtime.program.layers]
    places = {names[int(runtime.program.layer_of[move.instruction])]: place for place, move in enumerate(route.moves)}
    own = on_the_way(runtime, route, inputs)
    assert list(fields.masks) == ["image", "conv1", "conv2", "h.1", "fc1"]
    for name, mask in [*fields.masks.items()][1:]:
        pixels, inside = inputs["image"].copy(), mask.reshape(8, 8)
        pixels[0, ~inside] = 1 - pixels[0, ~inside]
        assert on_the_way(runtime, route, {"image": pixels})[places[name]] == own[places[name]], name
        pixels = inputs["image"].copy()
        pixels[0, inside] = 0
        assert on_the_way(runtime, route, {"image": pixels})[places[name]] != own[places[name]], name


def test_a_field_is_the_window_of_the_layers() -> None:
    """Of 3×3, of 2×2 after it, of 3×3 of those, with what the edge cuts off."""
    _, _, found = lived("05_digits_cnn")
    assert found.fields is not None
    (_, row, column, _), masks = found.route.start.index, found.fields.masks
    boxes = {}
    for name, mask in masks.items():
        rows, columns = np.nonzero(mask.reshape(8, 8))
        boxes[name] = (rows.min(), rows.max(), columns.min(), columns.max())
        assert len(rows) == (rows.max() - rows.min() + 1) * (columns.max() - columns.min() + 1), "it has no holes"
        assert boxes[name][0] <= row <= boxes[name][1]
        assert boxes[name][2] <= column <= boxes[name][3]
    assert boxes["image"] == (row, row, column, column)
    assert boxes["conv1"][1] - boxes["conv1"][0] == 2
    assert masks["fc1"].all()


@pytest.mark.parametrize("stem", one_of(4, FOLLOWED))
def test_stops_follow_each_other_without_gaps(stem: str) -> None:
    """From cycle 0 to the last transfer; and what is said of the time is their sum."""
    runtime, _, found = lived(stem)
    stops = found.stops
    assert stops[0].start == 0
    assert all(before.end == after.start for before, after in pairwise(stops))
    assert stops[-1].end <= runtime.timeline.makespan
    assert sum(found.spent.values()) == stops[-1].end
    for stop in stops[:-1]:
        starts, ends = runtime.timeline.start[stop.instruction], runtime.timeline.end[stop.instruction]
        assert (
            (stop.end == starts) if stop.words.startswith(("Lies", f"Instruction {stop.instruction:,} reads")) else (stop.start == starts)
        )
        assert stop.root is None or stop.end == starts
        assert stop.end <= ends + runtime.program.target.pipeline_cycles


QUICK = tuple(
    path.relative_to(folder()).with_suffix("").as_posix()
    for path in sorted([*folder().glob("*.tpu"), *folder().glob("gallery/*.tpu")])
    if path.stem not in {"09_cifar_resnet", "10_imdb_lstm", "11_resnet50", "14_digits_resnet", "mobilenet_v2", "shufflenet", "vit_tiny"}
)


@pytest.mark.parametrize("stem", one_of(5, QUICK))
def test_every_program_has_a_life(stem: str) -> None:
    _, _, found = lived(stem)
    assert found.route.moves[-1].target.memory == "host"
    assert found.stops[-1].words.startswith(f"It is {found.route.end}")


SOURCE = """weights random(seed=0)
calibration "inputs.npz"

model m(x: f32[2, 30] in [-1.0, 1.0]):
    weight w: f32[30, 8]
    return {returned}
"""
WHY = {
    "zeros": (0.0, "x @ w", {}, "The first item of x is 0 everywhere."),
    "nothing depends on it": (0.5, "x @ (w * 0.0)", {}, "No integer of the outputs changes if x[0, 0] or x[0, 29] is 0."),
    "words": (0.5, "x @ w", {"activation_bits": 16}, "Its values have 16 bits: they are no bytes."),
}


@each(WHY)
def test_a_sentence_says_why_there_is_none(value: float, returned: str, options: dict[str, Any], why: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "inputs.npz", x=np.full((2, 30), value, np.float32))
    (tmp_path / "m.tpu").write_text(SOURCE.format(returned=returned), "utf-8")
    exe = tpucc.compile(tmp_path / "m.tpu", **options)
    assert exe.compilation is not None
    assert life(exe.compilation, Timed(exe.runtime.program)) == why


def test_no_byte_is_followed_through_a_program_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tpucc.explain.life.MOST_INSTRUCTIONS", 16)
    exe = tpucc.compile(folder() / "02_iris.tpu")
    assert exe.compilation is not None
    why = "The program is too large to be executed for a page: it has 17 instructions and 91,392 products."
    assert life(exe.compilation, Timed(exe.runtime.program)) == why


def test_a_larger_program_is_followed_for_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tpucc.explain.life.MOST_MACS", 91_391)
    exe = tpucc.compile(folder() / "02_iris.tpu")
    assert exe.compilation is not None
    told = life(exe.compilation, Timed(exe.runtime.program), asked=False)
    assert isinstance(told, str)
    assert told.endswith("and 91,392 products. tpucc report 02_iris.tpu --values 0 follows a byte.")
    assert isinstance(life(exe.compilation, Timed(exe.runtime.program)), Life)
    monkeypatch.setattr("tpucc.explain.life.MOST_MACS", 91_392)
    assert isinstance(life(exe.compilation, Timed(exe.runtime.program), asked=False), Life)


def life_in(source: str, **options: Any) -> Life | str:
    exe = tpucc.compile_source(source, **options)
    assert exe.compilation is not None
    return life(exe.compilation, Timed(exe.runtime.program))


PATCHED = """weights random(seed=5)

model c(img: f32[2, 11, 9, 3] in [0.0, 1.0]):
    weight k: f32[3, 3, 3, 8]
    weight l: f32[3, 3, 8, 4]
    return conv2d(relu(conv2d(img, k, stride=2, padding="same")), l)
"""
STEPS = """weights random(seed=5)

model r(x: f32[4, 3, 7] in [-1.0, 1.0]):
    weight k: f32[7, 4]
    weight u: f32[4, 4]
    h = tanh(x[:, 0] @ k)
    for t in range(1, 3):
        h = tanh(x[:, t] @ k + h @ u)
    return h
"""


def test_what_the_host_sends_in_patches_or_in_parts_has_no_fields_of_the_input() -> None:
    """A pixel stands in several patches, and a part is no input. Without the passes that do so, there are fields: a window of windows."""
    packed, parts = life_in(PATCHED), life_in(STEPS, level=1)
    assert isinstance(packed, Life)
    assert isinstance(parts, Life)
    assert (packed.fields, parts.fields) == (None, None)
    plain, whole = life_in(PATCHED, level=0), life_in(STEPS)
    assert isinstance(plain, Life)
    assert isinstance(whole, Life)
    assert plain.fields is not None
    assert whole.fields is not None
    assert list(plain.fields.masks.values())[-1].sum() <= (2 * 2 + 3) ** 2 * 3
    assert [int(mask.sum()) for mask in whole.fields.masks.values()][-1] == 3 * 7


def test_of_several_images_the_one_of_the_byte_is_drawn(tmp_path: Path) -> None:
    """An input of rank 5, whose largest element is in the third of its three images."""
    x = np.full((2, 3, 4, 5, 16), 0.25, np.float32)
    x[0, 2, 3, 1, 6] = 1.0
    five = "weights random(seed=5)\n\nmodel five(x: f32[2, 3, 4, 5, 16] in [-1.0, 1.0]):\n"
    five += "    weight w: f32[16, 16]\n    weight v: f32[16, 4]\n    return relu(x @ w) @ v\n"
    np.savez(tmp_path / "x.npz", x=x)
    found = life_in(five, calibration=tmp_path / "x.npz")
    assert isinstance(found, Life)
    assert found.fields is not None
    for name in found.fields.masks:
        _, mask, own = found.fields.grids(name, 60)
        assert np.argwhere(own).tolist() == [[3, 1]]
        assert mask[3, 1]


def test_one_element_is_named_once(tmp_path: Path) -> None:
    unused = "weights random(seed=5)\n\nmodel un(x: f32[3, 16] in [-1.0, 1.0]):\n    weight w: f32[4, 4]\n    return x[:, 0:4] @ w\n"
    x = np.zeros((3, 16), np.float32)
    x[:, 15] = 1.0
    np.savez(tmp_path / "x.npz", x=x)
    assert life_in(unused, calibration=tmp_path / "x.npz") == "No integer of the outputs changes if x[0, 15] is 0."
