"""An operator that is added as one file is treated by every optimisation as those are of which the same is true.

`square` is written as docs/adding.md shows it, and put beside the others for a process of its own: `tpucc.ops` finds it by itself.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import tpucc
from tests.support.worked import WORKED, added_file
from tpucc.ops import OPS, also

SQUARE = added_file((WORKED / "operator.diff").read_text())
ADDED = '''
import importlib.abc
import importlib.util
import sys

class Beside(importlib.abc.MetaPathFinder):
    """Lets `tpucc.ops` have files in a second folder."""

    def find_spec(self, name, path, target=None):
        if name != "tpucc.ops":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        spec.submodule_search_locations.append(FOLDER)
        return spec

sys.meta_path.insert(0, Beside())
'''
COMPARED = '''
from dataclasses import replace
import tpucc
from tpucc.ir.node import NoAttributes
from tpucc.ops import OPS
from tpucc.ops.fused import Fused
from tpucc.runtime.check import compare_with_reference, random_inputs

HEAD = "weights random(seed=4)\\nmodel m("
SOURCES = {
    "fused into fc": ("x: f32[4, 30]):\\n    weight w: f32[30, 7]\\n    weight b: f32[7]\\n    return f(x @ w + b)\\n", {}),
    "fused into conv": ("x: f32[2, 6, 6, 3]):\\n    weight w: f32[3, 3, 3, 5]\\n    return f(conv2d(x, w, padding=\\"same\\"))\\n", {}),
    "fused into arithmetic": ("x: f32[4, 30]):\\n    weight w: f32[30, 7]\\n    h = x @ w\\n    return f(h * 0.5 + tanh(h)), h\\n", {}),
    "below a view": ("x: f32[4, 3, 10]):\\n    weight w: f32[10, 7]\\n    return f(reshape(x @ w, (12, 7)))\\n", {}),
    "flattened": (
        "x: f32[3, 4, 4, 2]):\\n    weight k: f32[3, 3, 2, 5]\\n    weight w: f32[20, 6]\\n"
        "    return f(flatten(conv2d(x, k, stride=2, padding=\\"same\\"))) @ w\\n", {}),
    "between pushed slices": (
        "x: f32[4, 30]):\\n    weight w: f32[30, 8]\\n    weight v: f32[3, 5]\\n"
        "    h = f(x @ w)\\n    return h[:, 0:3] @ v, h[:, 5:8] @ v\\n", {}),
    "gates": (
        "x: f32[4, 30]):\\n    weight w: f32[30, 12]\\n    weight v: f32[4, 5]\\n    h = x @ w\\n"
        "    return (f(h[:, 0:4]) * f(h[:, 4:8]) + h[:, 8:12]) @ v, f(h)[:, 0:4] + h[:, 1:5]\\n", {}),
    "between transposes": (
        "x: f32[6, 4]):\\n    weight a: f32[5, 6]\\n    weight b: f32[3, 5]\\n    return b @ f(a @ x)\\n", {}),
    "in bands": (
        "x: f32[1, 24, 12, 3]):\\n    weight k: f32[3, 3, 3, 4]\\n    weight l: f32[3, 3, 4, 4]\\n"
        "    h = conv2d(x, k, padding=\\"same\\")\\n    return conv2d(f(h) + h, l, padding=\\"same\\")\\n",
        {"target": "tiny", "overrides": {"unified_buffer_rows": 256}}),
    "among cores": ("x: f32[6, 30]):\\n    weight w: f32[30, 7]\\n    return softmax(f(x @ w)), f(x @ w * 2.0 + x @ w)\\n", {"cores": 3}),
    "on the host, at its edge": ("x: f32[4, 30]):\\n    weight w: f32[30, 7]\\n    return f(softmax(x @ w))\\n", {}),
    "in the middle of the host's": ("x: f32[4, 7]):\\n    weight w: f32[7, 7]\\n    return softmax(f(softmax(x @ w))) @ w\\n", {}),
    "behind a pool": ("x: f32[1, 6, 6, 3]):\\n    weight k: f32[3, 3, 3, 5]\\n    return f(max_pool(conv2d(x, k)))\\n", {}),
}

class Watch:
    """Keeps the operator graph as it is after the last pass that rewrites operators."""

    name, summary, level, after = "watch", "keeps the graph", 0, "split-maps"

    def run(self, graph, context):
        self.shape = [self._shape(graph, node) for node in graph]
        return graph

    def _shape(self, graph, node):
        place = {other.name: number for number, other in enumerate(graph)}
        attributes = node.attributes
        if isinstance(attributes, Fused):
            assert attributes.activation in ("", "tanh", F)
            attributes = replace(attributes, activation=attributes.activation.replace(F, "f"), pre=None)
        op = "f" if node.op == F else node.op
        values = "" if node.op == "constant" else attributes
        return op, tuple(place[name] for name in node.operands), repr(values), node.type.shape

def compiled(name, f):
    global F
    F = f
    text, options = SOURCES[name]
    watch = Watch()
    made = tpucc.compile_source(HEAD + text.replace("f(", f + "("), passes=(watch,), **options)
    inputs = random_inputs(made.runtime, 0)
    compared = compare_with_reference(made.runtime, made.compilation.layers, inputs)
    assert not any(c.unequal for c in compared), (name, f, compared)
    assert compared and made.run(inputs)
    return (*watch.shape, made.runtime.program.cores, any(node.op == F for node in made.compilation.layers)), made.warnings

for name in SOURCES:
    wanted, got = compiled(name, "relu"), compiled(name, "square")
    if name == "behind a pool":
        relu, own = ([node[0] for node in graph[:-2] if node[0] not in ("input", "constant", "patches")] for graph, _ in (wanted, got))
        assert (relu, own) == (["convolution", "max_pool"], ["conv2d", "max_pool", "f"])
    else:
        assert wanted[0] == got[0], (name, wanted[0], got[0])
        assert [w.replace("relu", "f") for w in wanted[1]] == [w.replace("square", "f") for w in got[1]], name
        if name == "in bands":
            assert any("bands" in warning for warning in got[1]), got[1]
print("the same")
'''


def python(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    text = f"FOLDER = {str(folder)!r}\n{ADDED}\n{script}"
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.soak
def test_square_is_treated_as_relu_where_the_same_is_true(tmp_path: Path) -> None:
    """Fused, pushed, sunk, cut into bands, divided among cores and placed alike, to the bit; but not hoisted: it falls left of zero."""
    (tmp_path / "square.py").write_text(SQUARE)
    found = python(tmp_path, COMPARED)
    assert (found.returncode, found.stdout) == (0, "the same\n"), found.stderr[-3000:]


@pytest.mark.parametrize(
    ("said", "lacking"),
    [
        ("    monotone=never,\n", "monotone"),
        ("    gradient=Rule(gradient),\n", "gradient"),
    ],
)
def test_an_operator_that_leaves_out_a_fact_is_refused_when_its_file_is_imported(tmp_path: Path, said: str, lacking: str) -> None:
    assert said in SQUARE
    (tmp_path / "lacking.py").write_text(SQUARE.replace(said, "").replace('name="square"', 'name="lacking"'))
    found = python(tmp_path, "from tpucc.ops import OPS; OPS['lacking']")
    last = found.stderr.strip().splitlines()[-1]
    assert last.startswith("TypeError: ")
    assert f"'{lacking}'" in last


def test_an_operator_of_a_while() -> None:
    """`also` adds an operator to the language, and takes it away again."""
    text = "model m(x: f32[2, 3]):\n    return twice(x)\n"
    twice = replace(OPS["relu"], name="twice", reference=lambda _, operands: operands[0] + operands[0])
    with also(twice):
        exe = tpucc.compile_source(text, target="tiny")
        assert OPS["twice"] is twice
        with pytest.raises(ValueError, match="there is an operator twice already"), also(twice):
            pass
    assert [node.op for node in exe.graph.value] == ["input", "twice"]
    with pytest.raises(tpucc.CompileError, match="no function is named twice"):
        tpucc.compile_source(text, target="tiny")
