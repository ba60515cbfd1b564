"""Casts to the type that a value has change nothing, wherever they stand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support.onnx_files import model_of, quantised_network
from tests.support.onnxruntime import session as session_of

onnx = pytest.importorskip("onnx")
node, array = onnx.helper.make_node, onnx.numpy_helper.from_array


def with_casts(model: Any, cast: str) -> Any:
    """The model with a cast of each value that is read to its own type, an Identity before it; as CastLike, it is like itself."""
    types = {value.name: value.type.tensor_type.elem_type for value in onnx.shape_inference.infer_shapes(model).graph.value_info}
    types |= {value.name: value.data_type for value in model.graph.initializer} | {"x": onnx.TensorProto.FLOAT}
    nodes = [part for number, each_node in enumerate(model.graph.node) for part in _cast_before(each_node, number, types, cast)]
    return model_of(nodes, model.graph.initializer, {"x": (6, 3, 8, 8)}, opset=17)


def _cast_before(of: Any, number: int, types: dict[str, int], cast: str) -> Iterator[Any]:
    for place, name in enumerate(of.input):
        same, own = f"{name}_{number}_{place}_same", f"{name}_{number}_{place}_cast"
        yield node("Identity", [name], [same])
        yield node("Cast", [same], [own], to=types[name]) if cast == "Cast" else node("CastLike", [same, name], [own])
    changed = onnx.NodeProto()
    changed.CopyFrom(of)
    changed.input[:] = [f"{name}_{number}_{place}_cast" for place, name in enumerate(of.input)]
    yield changed


@pytest.mark.parametrize("cast", ["Cast", "CastLike"])
@pytest.mark.parametrize("kind", [np.uint8, np.int8])
@pytest.mark.parametrize("axes", [(), (4,)])
def test_a_cast_to_the_type_that_a_value_has_changes_nothing(cast: str, kind: Any, axes: tuple[int, ...], tmp_path: Path) -> None:
    plain, path = quantised_network(kind, axes, pools_integers=True), tmp_path / "q.onnx"
    onnx.save(plain, path)
    source = tpucc.import_onnx(path).source
    onnx.save(with_casts(plain, cast), path)
    assert tpucc.import_onnx(path).source == source
    images = np.random.default_rng(1).normal(size=(6, 8, 8, 3)).astype(np.float32)
    session = session_of(path)
    (wanted,) = session.run(None, {"x": images.transpose(0, 3, 1, 2)})
    assert len(np.unique(wanted)) > 5
    np.testing.assert_array_equal(tpucc.compile(path).run(images)["y"], wanted)


def test_a_cast_in_a_branch_changes_nothing(tmp_path: Path) -> None:
    """The branch reads a value from outside, whose type is known there."""
    uint8, float32 = onnx.TensorProto.UINT8, onnx.TensorProto.FLOAT
    value = onnx.helper.make_tensor_value_info
    real = node("DequantizeLinear", ["c", "s", "z"], ["then"])
    then = onnx.helper.make_graph([node("Cast", ["q"], ["c"], to=uint8), real], "t", [], [value("then", float32, None)])
    other = onnx.helper.make_graph([node("DequantizeLinear", ["q", "s", "z"], ["other"])], "e", [], [value("other", float32, None)])
    constants = [array(np.float32(0.02), "s"), array(np.uint8(120), "z"), array(np.bool_(True), "yes")]
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("If", ["yes"], ["y"], then_branch=then, else_branch=other)]
    onnx.save(model_of(nodes, constants), tmp_path / "q.onnx")
    assert "quantize(x, 0.02, zero_point=-8)" in tpucc.import_onnx(tmp_path / "q.onnx").source
