"""Operators are asked for facts, not for their names: outside `tpucc/ops` a name stands only where the rule is about that operator.

A name is a string that equals an operator's, or an import of its file. Docstrings don't count. Some operators are called as other things
are (buffers, vector functions, keywords); those are listed too, for the test can't tell them apart. Labs ask about operators by name, and
the rules for ONNX's operators make them.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeGuard

from tests.support.cases import each
from tests.support.core import core_files
from tpucc.ops import OPS

ROOT = Path(__file__).resolve().parents[2] / "tpucc"

NODES = "makes nodes of these operators, or asks for values that nothing computes"
REWRITE = "the rewrite is about these operators"
SYNTAX = "the syntax that stands for the operator, or a word of the language"
BUFFERS = "kinds of buffers and ports"
VECTOR = "a function of the vector unit"
LAYERS = "words of the layer graph: its moves, and the views that the device walks"
BOUNDARY = "the edge of the device, of which quantize and dequantize are the two sides"
OTHER = "no operator: a section of a file, a word, or a key"

ALLOWED: Mapping[str, tuple[str, str]] = {
    "api.py": ("weight", "a noun of a message"),
    "cli/debug_session.py": ("where*2", OTHER),
    "language/apply.py": (
        "add, constant, div, equal, greater, greater_equal, import constant, import weight, less, less_equal, matmul, mul, not_equal, sub",
        SYNTAX,
    ),
    "floating/__init__.py": ("matmul", "the name of a function of it"),
    "language/calls.py": (
        "dropout",
        SYNTAX,
    ),
    "language/frame.py": ("max, min", SYNTAX),
    "language/slices.py": ("import slice, slice", SYNTAX),
    "language/statements.py": ("import weight, weight", SYNTAX),
    "language/static.py": ("max, min", SYNTAX),
    "language/syntax_errors.py": ("weight", SYNTAX),
    "language/training.py": ("import weight", SYNTAX),
    "language/types.py": ("input", SYNTAX),
    "language/warnings.py": ("input, weight", SYNTAX),
    "language/words.py": ("weight", SYNTAX),
    "interop/onnx/reading/taken_apart.py": ("import constant, import full, import weight, sigmoid", REWRITE),
    "interop/onnx/reading/folding.py": ("log", OTHER),
    "interop/onnx/reading/files/names.py": ("weight", SYNTAX),
    "interop/onnx/reading/row_numbers.py": ("embedding", NODES),
    "interop/onnx/reading/building/network.py": (
        "add*3, constant*2, dequantize, div, full*2, input*4, mul*3, quantize, reshape*10, sub, transpose*2, weight*7, zeros*2",
        NODES,
    ),
    "interop/onnx/reading/building/weights.py": ("import weight", NODES),
    "interop/onnx/reading/files/decoding.py": ("input", OTHER),
    "interop/export.py": ("import slice, import weight*2", NODES),
    "interop/onnx/carried.py": ("import weight", NODES),
    "interop/onnx/writing/graph.py": ("import weight", NODES),
    "interop/onnx/writing/stated_scales.py": ("import dequantize, import quantize*2", BOUNDARY),
    "interop/onnx/writing/rewriting.py": ("import constant, import dequantize, import patches, import quantize", BOUNDARY),
    "interop/onnx/writing/words.py": ("input", NODES),
    "data/weights.py": ("import constant*2, import weight, weight", NODES),
    "ir/node.py": ("input", NODES),
    "isa/container.py": ("constant*2", OTHER),
    "isa/listing/directives.py": ("constant*2, input*3", BUFFERS),
    "isa/program.py": ("constant, input, state", BUFFERS),
    "isa/verify/arithmetic.py": ("input", BUFFERS),
    "isa/verify/endings.py": ("constant, input, state*2", BUFFERS),
    "isa/verify/memories.py": ("state", BUFFERS),
    "machines/v2/expressions.py": ("abs, exp, log, max, min, sigmoid, sign, sqrt, tanh", VECTOR),
    "isa/verify/ports.py": ("input", BUFFERS),
    "isa/verify/structure.py": ("constant", BUFFERS),
    "layers/kinds.py": ("import constant, reshape, slice, transpose", LAYERS),
    "layers/partition.py": ("import constant, import input, import slice, import transpose", NODES),
    "layers/verify.py": (
        "import add, import concat*2, import constant, import conv2d*2, import matmul, import max_pool, import pad*2",
        "a layer's shape is that of the operator that it computes",
    ),
    "lowering/bands/sizes.py": ("import concat", "lanes are joined by products: how concat is lowered"),
    "lowering/bands/maps.py": ("import as_weights", "weights aren't cut, whoever makes them"),
    "lowering/layout.py": ("constant*2, input", BUFFERS),
    "lowering/values.py": ("import constant, import slice, import transpose", LAYERS),
    "lowering/verify.py": ("constant, input", BUFFERS),
    "passes/fuse_bias.py": ("import constant", NODES),
    "passes/split_maps.py": ("concat, import concat*2, import slice*2, slice", "bands are slices of lines, and their results are joined"),
    "passes/batch_products.py": ("import matmul, import slice*2", REWRITE),
    "passes/depthwise.py": ("import constant", NODES),
    "passes/batch_norm.py": ("import add, import batch_norm, import conv2d, import mul, import sub, mean", REWRITE),
    "passes/device_forms.py": (
        "import clip, import concat, import conv2d*2, import div, import global_avg_pool, import matmul, import maximum, import mean, "
        "import minimum, import mul, import patches, import reshape, import resize, import shuffle_lanes, import transpose",
        REWRITE,
    ),
    "passes/divide_batch.py": ("import constant", NODES),
    "passes/explicit_quantisation.py": ("import constant, import quantize", NODES),
    "passes/flatten_to_convolution.py": ("import conv2d, import matmul", REWRITE),
    "passes/folding.py": (
        "import add, import conv2d*2, import mul, import pad, import reshape, import slice*2, import sub, import transpose",
        REWRITE,
    ),
    "passes/biases.py": ("max", "a kind of pool"),
    "passes/move_integers.py": ("import dequantize", BOUNDARY),
    "passes/layering/graph.py": (
        "import constant*2, import dequantize*2, import quantize*2, import reshape*2, import slice, import transpose",
        NODES,
    ),
    "passes/layering/products.py": (
        "import conv_transpose2d*2, import transposed_convolution",
        "becomes several layers, as no other product does",
    ),
    "passes/layering/rearranging.py": (
        "import concat, import pad, import shuffle_lanes, import slice, import transpose",
        "these are a kind of their own",
    ),
    "passes/layering/transposed.py": ("import reshape, import slice", LAYERS),
    "passes/pack_patches.py": ("import constant, import conv2d*2, import patches*2", REWRITE),
    "passes/push_slices.py": ("import slice*2", REWRITE),
    "passes/quantise.py": ("import constant, import weight", NODES),
    "passes/rules.py": ("import constant", "what a pattern asks of a constant, it asks of no other operator"),
    "passes/rewriter.py": ("import as_weights, import constant*2, import reshape*2", NODES),
    "passes/calibrate.py": ("import clip*2, import dequantize*2, import quantize*2", REWRITE),
    "passes/sink_transposes.py": ("import matmul, import slice, import transpose", REWRITE),
    "passes/host_copies.py": ("import clip", REWRITE),
    "passes/place.py": ("import div", "a quotient of a constant is a reciprocal; a division by a constant scales, too"),
    "passes/placement_notes.py": ("import matmul", "a product is written with an operator of the language"),
    "source/statics.py": ("import constant, import slice", SYNTAX),
    "source/steps.py": ("import constant, import slice, import weight", SYNTAX),
    "training/passes/batch_statistics.py": ("import add, import batch_norm, import state, import weight, maximum, mean*3, sqrt", REWRITE),
    "training/passes/bfloat16_activations.py": ("import all_reduce, import round_to_bfloat16, round_to_bfloat16", NODES),
    "training/inference.py": ("import constant", NODES),
    "training/lowering/lower.py": ("import all_reduce, import state, import weight, input*2, state", NODES),
    "training/lowering/symbols.py": (
        "abs, exp, import embedding, import one_hot, log, max, min, sigmoid, sign, sqrt, tanh",
        f"{VECTOR}; and the checks of indices and labels",
    ),
    "training/lowering/trace.py": ("max", VECTOR),
    "training/roles.py": ("import round_to_bfloat16", NODES),
    "training/timing/groups.py": ("import transpose", "matrices that are turned for products"),
    "training/timing/step_time.py": ("import all_reduce, import constant, import round_to_bfloat16, import state, import weight", NODES),
    "training/passes/build.py": ("constant*2, import constant*2, input", NODES),
    "training/passes/draw_dropout.py": ("import dropout, import input, import mul, import random_uniform, random_uniform", REWRITE),
    "training/passes/logits.py": ("import cross_entropy, import softmax, import softmax_cross_entropy", REWRITE),
    "training/passes/names.py": ("import state", NODES),
    "training/passes/optimizer.py": ("import state, state", NODES),
    "training/passes/reduce.py": ("all_reduce, import all_reduce", NODES),
    "training/passes/states.py": ("import state, import weight", REWRITE),
    "training/passes/fold.py": ("import full, import matmul, import ones, import zeros", REWRITE),
    "training/passes/optimizers.py": ("sqrt*3", "a term of the formula"),
    "passes/write_weights.py": ("import as_weights, import matmul", REWRITE),
    "explain/fidelity.py": ("import constant", "constants have no error"),
    "texts/unchanged.py": ("constant, input*2", BUFFERS),
    "lowering/room.py": ("patches", OTHER),
    "explain/quality.py": ("import patches", "the host makes integers of an image's patches in place of the image's own"),
    "explain/attribution.py": ("input", "the name of the work on inputs"),
    "sim/fast/lanes.py": ("constant, input", BUFFERS),
    "sim/memories.py": ("constant", BUFFERS),
    "cli/step_work.py": ("state", OTHER),
    "playground/engine.py": ("equal", OTHER),
    "training/examples.py": (
        "cross_entropy, import one_hot, softmax_cross_entropy",
        "labels are compared with classes before the first step",
    ),
    "training/initial.py": ("batch_norm, import constant, mul", "operators that multiply by a weight, which begins at 1"),
    "training/plan.py": ("import all_reduce, import constant, import state, import weight", NODES),
    "training/session.py": (
        "cross_entropy, import state",
        "a message about the logarithm of probabilities that aren't; and the nodes of states",
    ),
    "training/start.py": ("softmax", "the loss that a message proposes follows the model's end"),
    "see/charts/errors.py": ("quantize", BOUNDARY),
    "see/diagrams/dataflow.py": ("constant, input", BUFFERS),
    "see/diagrams/hostwork.py": ("input*3", BUFFERS),
    "see/diagrams/layergraph.py": ("dequantize, input, quantize", BOUNDARY),
    "see/diagrams/operators.py": (
        "batch_norm, constant, import slice, state",
        "a layer for the eye; what stands beside; slices",
    ),
    "training_page/step_graph.py": ("conv2d", "its gradients are products too"),
    "see/page/__init__.py": ("state", SYNTAX),
    "see/sweeps/page.py": ("input", OTHER),
    "training_page/page.py": ("state", OTHER),
    "training/in_rows.py": ("input, state*2", OTHER),
    "see/waves/page.py": ("input", OTHER),
}
BY_NAME = {ROOT / "labs", ROOT / "interop/onnx/reading/operators"}
"""Packages whose every file asks about operators by name, or makes them."""
WORDS = frozenset({"div", "equal", "less", "max", "mean", "min", "sum", "weight"})
SHOWN = ("cli", "explain", "see", "training_page", "watch")
"""Rooms that write for people, in which an operator whose name is one of `WORDS` is a word, or a tag of HTML."""
HELP = (
    "ask facts_of(node.op) instead (tpucc/ops/facts.py): where its values come from, whether it is element-wise, monotone, commutative or "
    "a sum, what a part of it reads, its windows, its batch; or OPS[node.op].legalisation for how the device computes it. If the rule is "
    "about this very operator, list the place here with the reason"
)

CANDIDATES = re.compile(rf"tpucc\.ops|tpucc\.training\.operators|([\"'])({'|'.join(map(re.escape, OPS))})\1")
"""What a file without names of operators hasn't: to parse it takes longer than to look."""


def test_operators_are_named_only_where_the_rule_is_about_them() -> None:
    found = {str(path.relative_to(ROOT)): _names(path) for path in sorted(ROOT.rglob("*.py")) if not BY_NAME & {*path.parents}}
    listed = {file: names for file, (names, _) in ALLOWED.items()}
    changed = [
        f"{file}: has {found.get(file) or 'none'}; listed are {listed.get(file) or 'none'}"
        for file in {**found, **listed}
        if found.get(file, "") != listed.get(file, "")
    ]
    assert not changed, f"{HELP}:\n" + "\n".join(changed)


def test_the_core_compares_no_node_s_operator_with_a_name() -> None:
    """Neither `node.op == "relu"` nor `node.op in ("relu", "tanh")` nor `match node.op`.

    The operators' own files may, and so may `Node.is_input`: a node can't ask an operator.
    """
    may = {ROOT / "ops", ROOT / "ir" / "node.py"}
    files = [path for path in core_files() if not may & {path, *path.parents} and ".op" in path.read_text()]
    compared = [f"{path.relative_to(ROOT)}:{line}" for path in files for line in _comparisons(path.read_text())]
    assert not compared, f"{HELP}, and ask `relu.made(node)`:\n" + "\n".join(compared)


@each(
    [
        ('node.op == "relu"', True),
        ('"relu" != graph[name].op', True),
        ('node.op not in ("relu", *MORE)', True),
        ('node.op in {"relu"}', True),
        ('node.op in frozenset({"relu"})', True),
        ('match node.op:\n    case "add" | "sub":\n        pass', True),
        ("node.op == other.op", False),
        ("node.op in VIEWS", False),
        ('node.name == "relu"', False),
        ("match node.op:\n    case _:\n        pass", False),
    ]
)
def test_the_count_sees_comparisons_with_names(text: str, found: bool) -> None:
    assert bool(_comparisons(text)) is found


def test_every_place_has_its_reason() -> None:
    assert all(names and reason for names, reason in ALLOWED.values())


def test_the_count_sees_literals_and_imports_but_no_docstrings(tmp_path: Path) -> None:
    file = tmp_path / "some.py"
    imports = "from tpucc.ops.pad import PadAttributes\nfrom tpucc.ops.names import slice\n"
    words = 'class Kind(StrEnum):\n    ADD = "add"\n'
    file.write_text(f'"""relu"""\n{imports}if op in ("relu", "relu"):\n    "tanh"\n{words}')
    assert _names(file) == "import pad, import slice, relu*2"


def _names(path: Path) -> str:
    """The operators that a file names, and how often: `import pad, relu*2`. The files of operators may."""
    if {ROOT / "ops", ROOT / "training" / "operators"} & {*path.parents}:
        return ""
    text = path.read_text()
    if not CANDIDATES.search(text):
        return ""
    tree = ast.parse(text)
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    words = {id(each.value) for node in ast.walk(tree) if _is_words(node) for each in node.body if isinstance(each, ast.Assign)}
    found = Counter(name for node in ast.walk(tree) if id(node) not in prose | words for name in _named(node))
    if any(ROOT / room in path.parents for room in SHOWN):
        found = Counter({name: count for name, count in found.items() if name not in WORDS})
    return ", ".join(f"{name}*{count}" if count > 1 else name for name, count in sorted(found.items()))


def _is_words(node: ast.AST) -> TypeGuard[ast.ClassDef]:
    """Whether an enumeration of words is defined: these are its own, whatever operators are called."""
    return isinstance(node, ast.ClassDef) and any(isinstance(base, ast.Name) and base.id == "StrEnum" for base in node.bases)


def _named(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in OPS:
        yield node.value
    if isinstance(node, ast.ImportFrom) and node.module is not None:
        package, _, name = node.module.rpartition(".")
        by_name = node.module in ("tpucc.ops", "tpucc.ops.names")
        names = [alias.name for alias in node.names] if by_name else [name] if package in ("tpucc.ops", "tpucc.training.operators") else []
        yield from (f"import {name}" for name in names if name in OPS)


def _comparisons(text: str) -> list[int]:
    """The lines that compare something's `.op` with strings: by `==`, `!=`, `in`, `not in`, or `match`."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare):
            sides: list[ast.AST] = [node.left, *node.comparators]
        elif isinstance(node, ast.Match):
            sides = [node.subject, *(case.pattern for case in node.cases)]
        else:
            continue
        if any(isinstance(side, ast.Attribute) and side.attr == "op" for side in sides) and any(map(_has_text, sides)):
            found.append(node.lineno)
    return found


def _has_text(side: ast.AST) -> bool:
    """Whether strings are written there."""
    return any(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in ast.walk(side))
