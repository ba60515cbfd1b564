"""Models of scikit-learn that skl2onnx has written: what tpucc reads of them predicts what scikit-learn does, and each operator of
`ai.onnx.ml` what ONNX Runtime does. tests/support/sklearn_zoo.py writes the models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tpucc.data.weights import bind_arrays
from tpucc.interop.onnx.reading import read
from tpucc.numerics import AnyArray
from tpucc.ops.evaluate import evaluate

FOLDER = Path(__file__).parents[1] / "support" / "sklearn"
MODELS = sorted(FOLDER.glob("*.onnx"))
SETOSA = "0 for setosa, 1 for versicolor and 2 for virginica"


def values(path: Path, inputs: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """The results of a file in float32, by their names."""
    made = read(path).built({"batch": len(next(iter(inputs.values())))} if path.parent == FOLDER else {})
    found = evaluate(bind_arrays(made.graph, made.weights), inputs)
    return {output.name: found[output.node] for output in made.graph.outputs}


def source(name: str) -> str:
    return tpucc.import_onnx(FOLDER / f"{name}.onnx").source.replace("\n# ", " ")


@each(MODELS)
def test_a_model_of_scikit_learn_predicts_the_same(path: Path) -> None:
    with np.load(path.with_suffix(".npz")) as known:
        arrays = dict(known)
    *labels, found = values(path, {"X": arrays["x"]}).values()
    np.testing.assert_allclose(found, arrays["y"], rtol=1e-4, atol=1e-5)
    assert len(labels) == ("label" in arrays)
    for label in labels:
        np.testing.assert_array_equal(label, arrays["label"])


def test_a_model_runs_in_integers(tmp_path: Path) -> None:
    with np.load(FOLDER / "mlp_relu.npz") as known:
        x, y, label = known["x"], known["y"], known["label"]
    np.savez(tmp_path / "x.npz", X=x)
    exe = tpucc.compile(FOLDER / "mlp_relu.onnx", params={"batch": len(x)}, calibration=tmp_path / "x.npz")
    found = exe.run(x)
    assert (found["label"] == label).all()
    np.testing.assert_allclose(found["probabilities"], y, atol=0.05)


def test_names_of_classes_are_in_comments() -> None:
    for name, label in (("mlp_tanh_names", "output_label"), ("logistic_names", "output_label"), ("perceptron_names", "label")):
        text = source(name)
        assert f"{label}_index has the numbers of the classes that {label} names in the file: {SETOSA}." in text
        assert f"return {label}_index, " in text
    assert "names in the file: 0 for 2, 1 for 3 and 2 for 7." in source("one_vs_rest_others")
    columns = "output_probability has a column for each class, in the file a map for each row"
    assert f"{columns}: setosa, versicolor and virginica." in source("logistic_names")
    assert f"{columns}." in source("logistic")
    assert "_index" not in source("mlp_relu"), "each class is its own number"


def test_parts_of_skl2onnx_are_operators_again() -> None:
    """A sum of probabilities is 1, and the logistic function is one operator."""
    assert "sum" not in source("mlp_relu") + source("logistic_names")
    assert "exp" not in source("sgd")
    assert "sigmoid(" in source("sgd")


def model(nodes: Sequence[Any], x: Any, outputs: Mapping[str, int], constants: Mapping[str, Any] | None = None) -> Any:
    """A model of nodes and an input x like this array; the outputs have ONNX's numbers of their types."""
    helper = pytest.importorskip("onnx").helper
    arrays = [pytest.importorskip("onnx").numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()]
    given = helper.make_tensor_value_info("x", {"float32": 1, "int64": 7}[x.dtype.name], x.shape)
    results = [helper.make_tensor_value_info(name, type_, None) for name, type_ in outputs.items()]
    graph = helper.make_graph(list(nodes), "m", [given], results, arrays)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def node(op: str, inputs: Sequence[str], outputs: Sequence[str], domain: str = "ai.onnx.ml", **attributes: Any) -> Any:
    return pytest.importorskip("onnx").helper.make_node(op, inputs, outputs, domain=domain, **attributes)


X = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
X[2], X[3], X[4] = 0, -np.abs(X[3]), (0, -1, -2)
TWO = {"coefficients": [1.0, -0.5, 2.0], "intercepts": [0.25]}
THREE = {"coefficients": [1.0, -0.5, 2, 0.5, 1, -2, -1.5, 1, 0], "intercepts": [0.25, -0.5, 1.0]}
NAMES = ["setosa", "versicolor", "virginica"]


@each(
    {
        "scaler": ("Scaler", X, {"offset": [0.5, -1.0, 2.0], "scale": [1.5, 2.0, 0.25]}),
        "scaler of one number": ("Scaler", X, {"offset": [0.5], "scale": [2.0]}),
        "scaler that only moves": ("Scaler", X, {"offset": [0.5, 1.0, 2.0], "scale": [1.0] * 3}),
        "scaler of integers": ("Scaler", X.astype(np.int64), {"offset": [0.5] * 3, "scale": [2.0] * 3}),
        **{f"normalizer {norm}": ("Normalizer", X, {"norm": norm}) for norm in ("MAX", "L1", "L2")},
        "normalizer": ("Normalizer", X, {}),
        "normalizer of one row": ("Normalizer", X[0], {"norm": "L1"}),
        "normalizer of integers": ("Normalizer", np.int64([[1, 2, 3]]), {"norm": "L2"}),
        "binarizer": ("Binarizer", X, {"threshold": 0.5}),
        "regressor": ("LinearRegressor", X, TWO),
        "regressor of three targets": ("LinearRegressor", X, {**THREE, "targets": 3}),
        "regressor without intercepts": ("LinearRegressor", X, {"coefficients": TWO["coefficients"]}),
        "regressor of one row": ("LinearRegressor", X[0], TWO),
        "one score": ("LinearClassifier", X, {**TWO, "classlabels_ints": [0, 1], "post_transform": "LOGISTIC"}),
        "one score of names": ("LinearClassifier", X, {**TWO, "classlabels_strings": ["no", "yes"], "post_transform": "LOGISTIC"}),
        **{
            f"classifier {transform}": ("LinearClassifier", X, {**THREE, "classlabels_ints": [0, 1, 2], "post_transform": transform})
            for transform in ("NONE", "LOGISTIC", "SOFTMAX")
        },
        "classifier of other numbers": ("LinearClassifier", X, {**THREE, "classlabels_ints": [1, 2, 3]}),
        "classifier of names": ("LinearClassifier", X, {**THREE, "classlabels_strings": NAMES}),
        "column": ("ArrayFeatureExtractor", X, {"places": np.int64(1)}),
        "columns": ("ArrayFeatureExtractor", X, {"places": np.int64([[0, 2], [2, 2]])}),
        "entries": ("ArrayFeatureExtractor", X[0], {"places": np.int64([2, 0])}),
        "columns of a volume": ("ArrayFeatureExtractor", X.reshape(2, 3, 3), {"places": np.int64([2, 0])}),
    }
)
def test_operators_have_the_values_of_onnx_runtime(op: str, x: AnyArray, attributes: Mapping[str, Any], tmp_path: Path) -> None:
    from tests.support.onnxruntime import session as session_of

    constants = {name: value for name, value in attributes.items() if name == "places"}
    others = {name: value for name, value in attributes.items() if name != "places"}
    names = others.get("classlabels_strings") or others.get("classlabels_ints")
    outputs = {"label": 8 if "classlabels_strings" in others else 7, "y": 1} if names else {"y": 1}
    made = model([node(op, ["x", *constants], [*outputs], **others)], x, outputs, constants)
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    session = session_of(made)
    *labels, wanted = session.run(None, {"x": x})
    *numbers, found = values(tmp_path / "m.onnx", {"x": x.astype(np.float32)}).values()
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    for label, number in zip(labels, numbers, strict=True):
        assert [names[place] for place in number] == [*label]
        assert number.dtype == np.int32


def classifier(label: str = "label", **attributes: Any) -> Any:
    return node("LinearClassifier", ["x"], [label, "y"], **{**THREE, "classlabels_strings": NAMES, **attributes})


REFUSED = {
    "transform": ([classifier(post_transform="PROBIT")], {"y": 1}, {}, "E1007", "post_transform is PROBIT, of a score for each class"),
    "one score": (
        [node("LinearClassifier", ["x"], ["label", "y"], **TWO, classlabels_ints=[0, 1])],
        {"y": 1},
        {},
        "E1007",
        "post_transform is NONE, of one score for two classes",
    ),
    "regressor": ([node("LinearRegressor", ["x"], ["y"], **TWO, post_transform="SOFTMAX")], {"y": 1}, {}, "E1007", "is read with NONE"),
    "coefficients": (
        [node("LinearRegressor", ["x"], ["y"], coefficients=[1.0, 2.0])],
        {"y": 1},
        {},
        "E1001",
        "don't fit each other",
    ),
    "no classes": ([node("LinearClassifier", ["x"], ["l", "y"], **THREE)], {"y": 1}, {}, "E1001", "don't fit each other"),
    "offsets": ([node("Scaler", ["x"], ["y"], scale=[1.0])], {"y": 1}, {}, "E1001", "don't fit each other"),
    "column": ([node("ArrayFeatureExtractor", ["x", "p"], ["y"])], {"y": 1}, {"p": np.int64([3])}, "E1001", "don't fit each other"),
    "names that are compared": (
        [classifier(), node("Equal", ["label", "setosa"], ["z"], "")],
        {"label": 8, "z": 9},
        {"setosa": np.array(["setosa"])},
        "E1007",
        "names of classes may only be a result",
    ),
    "names alone": (
        [classifier(), node("Identity", ["setosa"], ["z"], "")],
        {"label": 8, "z": 8},
        {"setosa": np.array(["setosa"])},
        "E1007",
        "numbers are float, integer or boolean",
    ),
    "many factors": ([node("ReduceProd", ["x", "p"], ["y"], "")], {"y": 1}, {"p": np.int64([0, 1])}, "E1007", "a product of 18 values"),
    "missing values": (
        [node("Imputer", ["x"], ["y"], imputed_value_floats=[1.0], replaced_value_float=-1.0)],
        {"y": 1},
        {},
        "E1007",
        "leave SimpleImputer out",
    ),
    "trees": ([node("TreeEnsembleClassifier", ["x"], ["l", "y"])], {"y": 1}, {}, "E1006", "a network of the same data"),
    "kernels": ([node("SVMClassifier", ["x"], ["l", "y"])], {"y": 1}, {}, "E1006", "LinearSVC is read"),
    "others": ([node("FeatureVectorizer", ["x"], ["y"])], {"y": 1}, {}, "E1006", "Of scikit-learn tpucc reads linear models"),
}


@each(REFUSED)
def test_what_cannot_be_read_is_named(
    nodes: Sequence[Any], outputs: Mapping[str, int], constants: Mapping[str, Any], code: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / "m.onnx").write_bytes(model(nodes, X, outputs, constants).SerializeToString())
    with pytest.raises(tpucc.Error) as raised:
        tpucc.import_onnx(tmp_path / "m.onnx")
    assert {found.code for found in raised.value.diagnostics} == {code}
    assert words in str(raised.value)


def test_what_is_read_of_scikit_learn_is_said_where_a_model_of_it_is_refused(tmp_path: Path) -> None:
    """Also where it has operators of ONNX's own domain alone, as nearest neighbours."""
    for producer, wanted in (("skl2onnx", True), ("pytorch", False)):
        made = model([node("TopK", ["x", "k"], ["y", "places"], "")], X, {"y": 1}, {"k": np.int64([1])})
        made.producer_name = producer
        (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
        with pytest.raises(tpucc.CompileError) as raised:
            tpucc.import_onnx(tmp_path / "m.onnx")
        assert ("LogisticRegression, MLPClassifier and MLPRegressor" in str(raised.value)) == wanted


def test_other_values_than_tensors_are_refused(tmp_path: Path) -> None:
    helper = pytest.importorskip("onnx").helper
    made = model([node("Identity", ["x"], ["y"], "")], X, {"y": 1})
    made.graph.input.append(helper.make_tensor_sequence_value_info("m", 1, None))
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    with pytest.raises(tpucc.CompileError, match=r"E1006: m\.onnx: m is a sequence, a map or another value"):
        tpucc.import_onnx(tmp_path / "m.onnx")


def test_numbers_of_classes_have_a_name_of_their_own(tmp_path: Path) -> None:
    """Also where two results are the same names, and where the file has a value of that name."""
    nodes = [classifier(), node("Identity", ["label"], ["again"], ""), node("Identity", ["y"], ["label_index"], "")]
    made = model(nodes, X, {"label": 8, "again": 8, "label_index": 1})
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    found = values(tmp_path / "m.onnx", {"x": X})
    assert {name: array.dtype.name for name, array in found.items()} == {
        "label_index_2": "int32",
        "again_index": "int32",
        "label_index": "float32",
    }
    assert "Renamed" not in tpucc.import_onnx(tmp_path / "m.onnx").source
