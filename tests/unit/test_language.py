"""The language means what its page says: static evaluation, names of outputs, slices, loops, calls, files."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import tpucc
from tests.support.cases import LONG, each, one_of
from tests.support.networks import elaborated, results
from tests.support.seeds import at_length
from tpucc.diagnostics import Source
from tpucc.driver import front_end
from tpucc.ir import Range
from tpucc.ir.dtypes import I16
from tpucc.language.elaborate import Model
from tpucc.language.problem import DEFAULT, Limits
from tpucc.options import Options

FOLDER = Path(__file__).resolve().parents[1]
PROGRAMS = sorted([*(FOLDER / "programs").glob("*.tpu"), *(FOLDER.parent / "programs").glob("*.tpu")])


def model(text: str, limits: Limits = DEFAULT, **params: str) -> Model:
    return front_end(Source("t.tpu", text), Options(params=params, limits=limits))


def outputs(text: str, **params: str) -> dict[str, str]:
    """Output names and their types."""
    found = model(text, **params).graph
    return {o.name: found[o.node].type.brief for o in found.outputs}


def static(expression: str, before: str = "") -> str:
    """The value of a static expression, which gives a weight its key."""
    text = f'model m(x: f32[4, 6]):\n    {before or "pass"}\n    weight w: f32[6, 1] = "{{{expression}}}"\n    return x @ w\n'
    return next(node.attributes.key for node in model(text).graph if node.op == "weight")


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("mnist_cnn", {"out": "f32[8, 10]"}),
        ("resnet", {"out": "f32[8, 10]"}),
        ("imdb_lstm", {"out": "f32[8, 1]"}),
        ("left_constants", {"out": "f32[17, 30]"}),
        ("attention", {"out": "f32[2, 10]"}),
        ("host_only", {"x": "f32[8, 8]", "out1": "f32[8, 8]", "n": "i32[8]", "out3": "f32[2, 2]"}),
    ],
)
def test_whole_programs(name: str, wanted: dict[str, str]) -> None:
    assert outputs((FOLDER / "programs" / f"{name}.tpu").read_text()) == wanted


def test_an_lstm_shares_its_weights_between_steps() -> None:
    graph = model((FOLDER / "programs" / "imdb_lstm.tpu").read_text(), time="20").graph
    assert sorted(n.attributes.key for n in graph if n.op == "weight") == sorted(
        ["embedding", "fc.b", "fc.w", "lstm.bias", "lstm.kernel", "lstm.recurrent"]
    )
    assert sum(n.op == "matmul" for n in graph) == 41


def test_a_residual_network_grows_with_its_param() -> None:
    text = (FOLDER / "programs" / "resnet.tpu").read_text()
    count = {blocks: sum(n.op == "conv2d" for n in model(text, blocks=str(blocks)).graph) for blocks in (1, 3, 9)}
    assert count == {n: 1 + 6 * n + 2 for n in (1, 3, 9)}


@each(
    [
        ("-7 // 2", "-4"),
        ("-7 % 3", "2"),
        ("7 / 2", "3.5"),
        ("2 + 3 * 4 - 1", "13"),
        ("len(x.shape)", "2"),
        ("x.shape[-1]", "6"),
        ("min(3, 1, 2) + max(4, 5)", "6"),
        ("ceil_div(7, 2)", "4"),
        ("(1, 2, 3)[1]", "2"),
        ("1 < 2 and not 2 < 1", "True"),
        ("1 == 1 or 1 // 0", "True"),
        ("[3, 4][-1]", "4"),
    ]
)
def test_static_expressions(expression: str, value: str) -> None:
    assert static(expression) == value


def test_strings_have_holes_braces_and_escapes() -> None:
    text = 'model m(x: f32[4, 6]):\n    i = 2\n    weight w: f32[6, 1] = "a{i + 1}{{b}}\\"\\\\c"\n    return x @ w\n'
    assert [n.attributes.key for n in model(text).graph if n.op == "weight"] == ['a3{b}"\\c']


def test_an_error_in_a_hole_points_at_the_name() -> None:
    with pytest.raises(tpucc.CompileError) as caught:
        model('model m(x: f32[4, 6]):\n    weight w: f32[6, 1] = "a.{ i }"\n    return x @ w\n')
    (found,) = caught.value.diagnostics
    assert (found.code, str(found.span)) == ("E0201", "2:32-33")


@each(
    [
        ("0", "f32[6]"),
        ("-1", "f32[6]"),
        (":, 2", "f32[4]"),
        (":, 1:3", "f32[4, 2]"),
        ("1:100", "f32[3, 6]"),
        (":, -2:", "f32[4, 2]"),
        ("1:-1, :3", "f32[2, 3]"),
        ("0, 0", "f32[]"),
    ]
)
def test_slices_are_numpy_s(index: str, shape: str) -> None:
    assert outputs(f"model m(x: f32[4, 6]):\n    return x[{index}]\n") == {"out": shape}
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    wanted = eval(f"x[{index}]", {"x": x})
    np.testing.assert_array_equal(tpucc.compile_source(f"model m(x: f32[4, 6]):\n    return x[{index}]\n").run(x=x)["out"], wanted)


@each(
    [
        ("h", ["h"]),
        ("h, c", ["h", "c"]),
        ("h, h", ["h", "out1"]),
        ("h + c", ["out"]),
        ("h, h + c", ["h", "out1"]),
        ("h + c, h", ["out0", "h"]),
        ("pair(h)", ["out0", "out1"]),
        ("(c, h)", ["c", "h"]),
        ("both", ["out0", "out1"]),
        ("both[0:1]", ["out"]),
        ("[h] + both", ["out0", "out1", "out2"]),
        ("alone", ["out"]),
    ]
)
def test_outputs_are_named_after_variables(returned: str, names: list[str]) -> None:
    before = "    h = relu(x)\n    c = tanh(x)\n    both = h, c\n    alone = [h]\n"
    text = f"def pair(x):\n    return x, relu(x)\n\nmodel m(x: f32[4]):\n{before}    return {returned}\n"
    assert list(outputs(text)) == names


def test_loops_tuples_and_conditions() -> None:
    text = (
        "param n = 3\n"
        "def grow(x, times=1):\n"
        "    if times == 0:\n        return x\n"
        "    for i in range(times, 0, -1):\n        x = concat([x, x[:, 0:i]])\n"
        "    return x\n"
        "model m(x: f32[2, 4]):\n"
        "    a, b = x, relu(x)\n    a, b = b, a\n"
        "    return grow(a, times=n), grow(b, 0), grow(x)\n"
    )
    assert list(outputs(text).values()) == ["f32[2, 10]", "f32[2, 4]", "f32[2, 5]"]
    assert list(outputs(text, n="0").values()) == ["f32[2, 4]", "f32[2, 4]", "f32[2, 5]"]


@each(product(["\n", "\r\n", "\r"], ["", "\ufeff"], ["    ", "\t", "  "]))
def test_files_may_have_marks_and_line_ends_of_any_kind(end: str, mark: str, indent: str) -> None:
    lines = ["# a comment", "model m(x: f32[2,", "         4]):  # in brackets", "", f"{indent}y = relu(", "x)", f"{indent}return y"]
    assert outputs(mark + end.join(lines)) == {"y": "f32[2, 4]"}


def test_params_are_set_from_outside() -> None:
    text = 'param batch = 2\nparam wide = batch * 4\nparam name = "a"\nmodel m(x: f32[batch, wide]):\n    return x\n'
    assert outputs(text) == {"x": "f32[2, 8]"}
    assert outputs(text, batch="3 + 1") == {"x": "f32[4, 16]"}
    assert outputs(text, wide="5", name='"b"') == {"x": "f32[2, 5]"}
    for params, code in (({"bach": "3"}, "E0510"), ({"batch": "3 +"}, "E0519"), ({"batch": "wide"}, "E0519"), ({"batch": "-3"}, "E0308")):
        with pytest.raises(tpucc.Error) as caught:
            model(text, **params)
        assert caught.value.diagnostics[0].code == code


@each([("0", "E0308"), ("-3", "E0308"), ("2.5", "E0216"), ('"8"', "E0216"), ("1000000000000", "E0308")])
def test_a_given_value_that_is_no_size_is_one_error_of_the_command_line(value: str, code: str) -> None:
    text = "param batch = 2\nmodel m(x: f32[batch, 4], y: f32[batch, 4]) -> f32[batch, 4]:\n    return x + y\n"
    with pytest.raises(tpucc.diagnostics.UsageError) as caught:
        model(text, batch=value)
    (found,) = caught.value.diagnostics
    assert found.code == code
    assert f"-D batch={value}" in found.message


def test_what_the_source_makes_of_a_given_value_is_the_source_s() -> None:
    """-D is blamed for a size that is the param, not for what is computed from it, nor for a variable of its name."""
    for size, before in (("batch // 2", ""), ("batch", "    batch = 0\n")):
        text = f"param batch = 2\nweights random(seed=0)\nmodel m(x: f32[4, 4]):\n{before}    weight w: f32[4, {size}]\n    return x @ w\n"
        with pytest.raises(tpucc.CompileError) as caught:
            model(text, batch="1")
        assert [found.code for found in caught.value.diagnostics] == ["E0308"]


@each(
    [
        ("0.5, 9", "E0216", 23, ()),
        ("0, 9.0", "E0216", 26, ("write 9",)),
        ("0, 9 / 2", "E0216", 26, ()),
        ("True, 9", "E0216", 23, ()),
        ("0, 2147483648", "E0321", 26, ()),
        ("-2147483649, 0", "E0321", 23, ()),
    ]
)
def test_the_range_of_integers_has_integers_as_its_ends(bounds: str, code: str, column: int, help: tuple[str, ...]) -> None:
    with pytest.raises(tpucc.CompileError) as caught:
        model(f"model m(ids: i32[8] in [{bounds}]):\n    return ids\n")
    (found,) = caught.value.diagnostics
    assert (found.code, found.labels[0].span.column, found.help) == (code, column + 2, help)


def test_the_range_of_integers_goes_to_the_ends_of_i32() -> None:
    found = model("param top = 2147483647\nmodel m(ids: i32[8] in [-2147483648, top]):\n    return ids\n")
    assert found.graph.inputs[0].type.range == Range(-(2.0**31), 2.0**31 - 1)


def test_directives_are_read_in_any_order() -> None:
    text = 'model m(x: f32[2]):\n    return x\nactivations i16\ncalibration "c.npz"\nweights "w.npz"\n'
    found = model(text)
    assert (found.weights, found.calibration, found.activations, found.random_seed) == ("w.npz", "c.npz", I16, None)
    assert model("weights random(seed=7)\nmodel m(x: f32[2]):\n    return x\n").random_seed == 7


def test_origins_know_the_calls() -> None:
    text = "def f(x):\n    return relu(x)\ndef g(x):\n    return f(x)\nmodel m(x: f32[2]):\n    return g(x)\n"
    (node,) = (n for n in model(text).graph if n.op == "relu")
    assert [s.line for s in node.origin.spans] == [2]
    assert [s.line for s in node.origin.calls] == [4, 6]
    assert node.origin.line == 6


@pytest.mark.parametrize(
    "text",
    [
        "model m(x: f32[2]):\n    return x" + " + x" * 20_000 + "\n",
        "model m(x: f32[2]):\n    return " + "(" * 10_000 + "x" + ")" * 10_000 + "\n",
        "model m(x: f32[2]):\n    return x * 1" + "0" * 5_000 + "\n",
        "model m(x: f32[2]):\n    for i in range(1000000000):\n        pass\n    return x\n",
        "model m(x: f32[1099511627776, 1099511627776]):\n    return x\n",
        "model m(x: f32[2]):\n" + "".join("    " * (i + 1) + "if 1 == 1:\n" for i in range(500)) + "    " * 501 + "return x\n",
        "model m(x: f32[2]):\n    return -" + "-" * 10_000 + "x\n",
        "model m(x: f32[2]):\n    n = 2\n" + "    n = n * n\n" * 100 + "    return x\n",
    ],
    ids=["operators", "brackets", "digits", "loop", "elements", "blocks", "signs", "growth"],
)
def test_limits_are_located_errors(text: str) -> None:
    with pytest.raises((tpucc.LimitError, tpucc.CompileError)) as caught:
        model(text)
    assert caught.value.diagnostics[0].span is not None


@pytest.mark.parametrize(
    "body",
    [
        "longer = sizes + [1]",
        "same = sizes == sizes",
        "there = 1 in sizes",
        "least = min(sizes)",
        "rest = sizes[1:]",
        'name = "{sizes}"',
        "y = constant(sizes)",
        "y = f(sizes + sizes)",
    ],
)
def test_operations_on_long_lists_are_counted(body: str) -> None:
    """Each takes milliseconds, and a loop may run a million times."""
    text = "def f(n):\n    return n\nmodel m(x: f32[2]):\n    sizes = [0] * 40000\n    for i in range(1000000):\n"
    with pytest.raises(tpucc.LimitError, match="E0609"):
        model(f"{text}        {body}\n    return x\n", limits=Limits(steps=200_000))


@each(
    [
        "y = {}", "y = -{}", "y = not {}", "y = x * {}", "y = {} + 1", "y = {} < 3", "y = 1 if {} else 2", "y = {} and 1", "y = {}.shape",
        "y = x[{}]", "y = x[0, 1:{}]", "y = [1, {}][0] + 1", "y = (1, 2)[{}]", "y = len({})", "y = min({}, 1)", "y = relu({})",
        "y = concat([x, {}])", "y = softmax(x, axis={})", "y = reshape(x, [{}, 3])", "y = split(x, {}, 1)", "y = f({})", "a, b = {}",
        "for i in range({}, 3):\n        y = i", "for i in {}:\n        y = i", "if {}:\n        y = 1", "y = 1\n    y += {}",
        'weight w: f32[{}] = "k"', "weight w: f32[2] = {}", 'weight w: f32[2] = "{{{}}}"',
    ]
)  # fmt: skip
def test_what_needs_a_wrong_value_is_no_second_error(statement: str) -> None:
    with pytest.raises(tpucc.CompileError) as caught:
        model(f"def f(a):\n    return a + 1\nmodel m(x: f32[2, 3]):\n    {statement.format('nothing')}\n    return x\n")
    assert [(found.code, found.message) for found in caught.value.diagnostics] == [("E0201", "nothing is named nothing")]


@each([1, 2, 50, 60])
def test_errors_in_a_def_that_nothing_calls_are_told(count: int) -> None:
    lines = "".join(f"    y{i} = nothing{i}\n" for i in range(count))
    with pytest.raises(tpucc.CompileError) as caught:
        model(f"def f(x):\n{lines}    return x\nmodel m(x: f32[2]):\n    return x\n")
    assert [found.span.line for found in caught.value.diagnostics if found.span] == list(range(2, 2 + min(count, DEFAULT.errors)))


def test_bounds_are_options() -> None:
    text = "def f(n):\n    return n\nmodel m(x: f32[2]):\n    return x * f(f(f(2)))\n"
    with pytest.raises(tpucc.LimitError, match=r"t\.tpu:4:16: error E0608: defs are called more than 2 times"):
        model(text, limits=Limits(all_calls=2))
    assert model(text, limits=Limits(all_calls=3))


TRAINED = """
weights random(seed=0)
examples "digits.npz"
optimizer adam(rate=0.002, beta1=0.5)

def loss(y, label):
    return y[0, label]

model m(x: f32[8, 16] in [0.0, 1.0]) -> f32[8, 4]:
    weight w: f32[16, 4] = "fc.w" fixed
    weight b: f32[4] = "fc.b"
    return x @ w + b

train(x: f32[8, 16]) -> f32[]:
    y = m(x)
    return loss(y, 0) + loss(y, label=1)
"""


def mutated(text: str, choose: random.Random) -> str:
    """One to three random edits: something deleted, doubled, exchanged or put in."""
    for _ in range(choose.randint(1, 3)):
        at, length = choose.randrange(len(text)), choose.randint(1, 8)
        signs = "()[]{}\"':=,.@+-*/%#\\ \n\t09azé\u202e\0"
        words = ["\n", "  ", "def ", "x"]
        piece = choose.choice(["", text[at : at + length] * 2, choose.choice(signs), choose.choice(words)])
        text = text[:at] + piece + text[at + length :]
    return text


@pytest.mark.long
@pytest.mark.parametrize("first", one_of(4, range(0, 2000, 500), LONG))
def test_mutated_sources_compile_or_get_a_message(first: int) -> None:
    check_mutated(range(first, first + 500))


@at_length(100_000, 1_000)
def test_mutated_sources_compile_or_get_a_message_at_length(seeds: range) -> None:
    check_mutated(seeds)


def check_mutated(seeds: range) -> None:
    sources, wrong = [path.read_text() for path in PROGRAMS if "lstm" not in path.name and "resnet" not in path.name], 0
    sources += [TRAINED] * (len(sources) // 4)
    for seed in seeds:
        choose = random.Random(seed)
        text = mutated(choose.choice(sources), choose)
        wrong += not good(text, seed)
    assert wrong > 0.6 * len(seeds)


def good(text: str, seed: int) -> bool:
    """Whether a source compiles; if not, every error in it has its place. Anything but an error of tpucc is not caught."""
    try:
        model(text)
    except (tpucc.CompileError, tpucc.LimitError) as error:
        assert str(error), f"seed {seed}"  # noqa: PT017
        assert all(d.labels for d in error.diagnostics), f"seed {seed}"  # noqa: PT017
        return False
    return True


INDICES = [
    "::2, :, 1:4",
    "::-1",
    "1:-1:2, ::-1, -1",
    "5:0:-2, 3, ::-3",
    "-1::-4, -2:",
    ":0:-1, ::3, 2:-9:-1",
    "::9, ::-9, ::1",
    "2:3:-1 + 2",
]


@each(INDICES)
def test_slices_are_numpys(index: str) -> None:
    x = np.arange(6 * 5 * 4, dtype=np.float32).reshape(6, 5, 4)
    graph = elaborated(f"model m(x: f32[6, 5, 4]):\n    return x[{index}] * 1.0\n")
    assert np.array_equal(results(graph, {"x": x})["out"], eval(f"x[{index}]", {"x": x}))


def test_split_is_slices_side_by_side() -> None:
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    graph = elaborated(
        "model m(x: f32[4, 6]):\n    a, b = split(x, 2, axis=0)\n    c, d, e = split(x, [1, 3, 2], axis=-1)\n"
        "    return a, b, c, d, e, split(x, 1, axis=0)[0] * 1.0\n"
    )
    found = results(graph, {"x": x})
    assert [node.name for node in graph if node.op == "slice"] == ["a", "b", "c", "d", "e"]
    for name, wanted in zip("abcde", (x[:2], x[2:], x[:, :1], x[:, 1:4], x[:, 4:]), strict=True):
        assert np.array_equal(found[name], wanted)
    assert np.array_equal(found["out5"], x)
