"""What stands in the source of an imported model: names of weights and of values, and no more than is meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tests.support.onnx_files import model_of

onnx = pytest.importorskip("onnx")
node, array = onnx.helper.make_node, onnx.numpy_helper.from_array
FOLDED = "pkg.onnxscript.optimizer.folded_from"


def drawn(name: str, *shape: int) -> Any:
    values = np.random.default_rng(list(name.encode())).normal(0, 0.5, shape)
    return array(values.astype(np.float32), name)


def whole(name: str, *numbers: int) -> Any:
    return array(np.array(numbers, np.int64), name)


def imported(model: Any, tmp_path: Path, **params: int) -> Any:
    onnx.save(model, tmp_path / "net.onnx")
    return tpucc.import_onnx(tmp_path / "net.onnx", params=params)


def folded(model: Any, name: str, sources: str) -> Any:
    """The model, which says of a constant of what it was computed."""
    value = model.graph.value_info.add()
    value.name = name
    entry = value.metadata_props.add()
    entry.key, entry.value = FOLDED, sources
    return model


def cell(op: str, x: str, *states: str, name: str = "cell", results: int = 1, **attributes: Any) -> tuple[Any, list[Any]]:
    """A recurrent layer of two features and three units, and its constants."""
    gates, directions = {"LSTM": 4, "GRU": 3, "RNN": 1}[op] * 3, 2 if attributes else 1
    constants = [drawn(f"val_{name}_w", directions, gates, 2), drawn(f"val_{name}_r", directions, gates, 3)]
    names = [constant.name for constant in constants]
    outputs = [f"{name}_{index}" for index in range(results)]
    return node(op, [x, *names, "", "", *states], outputs, name=name, hidden_size=3, **attributes), constants


# keys of weights


@each(["LSTM", "GRU", "RNN"])
def test_a_state_that_is_expanded_to_the_batch_keeps_its_name(op: str, tmp_path: Path) -> None:
    """As of `self.h0.expand(1, batch, 3)`, by the names that PyTorch's exporters give to results."""
    states = ["h0", "c0"][: 2 if op == "LSTM" else 1]
    nodes = [node("Shape", ["x"], ["s"], start=1, end=2), node("Concat", ["val_1", "s", "val_3"], ["size"], axis=0)]
    nodes += [node("Expand", [state, "size"], [f"/Expand_{state}_output_0"]) for state in states]
    layer, constants = cell(op, "x", *(f"/Expand_{state}_output_0" for state in states))
    constants += [whole("val_1", 1), whole("val_3", 3), *(drawn(state, 1, 1, 3) for state in states)]
    made = imported(model_of([*nodes, layer], constants, {"x": (2, "batch", 2)}, ("cell_0",)), tmp_path, batch=4)
    assert {*states} < made.weights.keys()
    assert len(made.weights) == 2 + len(states)
    assert all(made.weights[state].shape == (1, 1, 3) for state in states)


def test_a_token_and_places_keep_their_names(tmp_path: Path) -> None:
    """A class token is expanded to the batch; of a table of places as many rows are taken as there are."""
    nodes = [
        node("Shape", ["x"], ["s"], start=0, end=1),
        node("Concat", ["s", "one", "width"], ["size"], axis=0),
        node("Expand", ["cls_token", "size"], ["expand"]),
        node("Concat", ["expand", "x"], ["all"], axis=1),
        node("Slice", ["places", "zero", "three", "one"], ["slice_1"]),
        node("Add", ["all", "slice_1"], ["y"]),
    ]
    numbers = [whole("zero", 0), whole("one", 1), whole("three", 3), whole("width", 4)]
    constants = [drawn("cls_token", 1, 1, 4), drawn("places", 1, 6, 4), *numbers]
    made = imported(model_of(nodes, constants, {"x": ("batch", 2, 4)}), tmp_path)
    assert {key: made.weights[key].shape for key in made.weights} == {"cls_token": (1, 1, 4), "places": (3, 4)}


@each(
    [
        ("expand_1", "['c0', 'clone', 'val_3', 'expand', 'unsqueeze_2']", "c0"),
        ("val_8", "['proj.in_weight']", "proj.in_weight"),
        ("embedding_1", "['arange', 'places.weight', 'val_1']", "places.weight"),
        ("val_9", "['head.weight', 'head.bias', 'val_2']", "mat_mul_7.weight"),
        ("val_9", "['mul_2', 'exp', 'val_2']", "mat_mul_7.weight"),
        ("val_9", "", "mat_mul_7.weight"),
    ]
)
def test_a_folded_constant_is_called_after_its_parameter(name: str, sources: str, wanted: str, tmp_path: Path) -> None:
    """PyTorch's export calls what it has computed after the operation, and says of what it was computed."""
    model = model_of([node("MatMul", ["x", name], ["y"], name="node_MatMul_7")], [drawn(name, 4, 5)])
    assert set(imported(folded(model, name, sources), tmp_path).weights) == {wanted}


def test_states_without_a_name_are_called_after_their_layer(tmp_path: Path) -> None:
    layer, constants = cell("LSTM", "x", "val_1", "val_2", name="/enc/LSTM")
    made = imported(
        model_of([layer], [*constants, drawn("val_1", 1, 2, 3), drawn("val_2", 1, 2, 3)], {"x": (2, 2, 2)}, ("/enc/LSTM_0",)), tmp_path
    )
    assert set(made.weights) == {"enc.kernel", "enc.recurrent", "enc.h0", "enc.c0"}
