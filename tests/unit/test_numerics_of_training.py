"""The choices of a step's numerics: values rounded to bfloat16 in memory, and batch statistics in one pass."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tpucc.cli.main import main
from tpucc.diagnostics import Source
from tpucc.floating.bfloat16 import round_to_bfloat16
from tpucc.ir import Graph, Node
from tpucc.training.arithmetic import NUMPY
from tpucc.training.numerics import Numerics
from tpucc.training.operators.round_to_bfloat16 import RoundToBfloat16Attributes
from tpucc.training.passes.names import loss_of
from tpucc.training.plan import Plan
from tpucc.training.start import step_of
from tpucc.training.step import Step

NET = """\
param batch = 16
weights random(seed=3)
def block(x, filters, name):
    weight kernel: f32[3, 3, x.shape[3], filters] = "{name}.kernel"
    weight gamma: f32[filters] = "{name}.gamma"
    weight beta: f32[filters] = "{name}.beta"
    weight mean: f32[filters] = "{name}.mean"
    weight variance: f32[filters] = "{name}.variance"
    return relu(batch_norm(conv2d(x, kernel, padding="same"), gamma, beta, mean, variance))

model net(x: f32[batch, 6, 5, 3]) -> f32[batch, 4]:
    h = block(x, 16, "a")
    h = block(h, 8, "b")
    weight w: f32[8, 4] = "w"
    return softmax(global_avg_pool(h) @ w)

optimizer momentum(rate=0.1, decay=0.9)

train(x: f32[batch, 6, 5, 3], label: i32[batch] in [0, 3]) -> f32[]:
    return cross_entropy(net(x), label)
"""
ROUNDED = ["x", "conv2d", "conv2d.1", "global_avg_pool", "matmul", "d.global_avg_pool", "d.h"]
BF16 = Numerics(activations="bf16")
ONE_PASS = Numerics(statistics="one-pass")


def step(numerics: Numerics, cores: int = 1) -> Step:
    return step_of(Source("net.tpu", NET), {}, cores, numerics)[1]


def values(made: Step, kept: list[str], seed: int = 0) -> dict[str, np.ndarray]:
    """The values of these nodes on drawn states and inputs, of one part."""
    draw = np.random.default_rng(seed)
    states = {node.name: draw.uniform(0.5, 1.5, node.type.shape).astype(np.float32) for node in made.graph if node.op == "state"}
    inputs = {
        "x": draw.normal(size=(16 // made.parts, 6, 5, 3)).astype(np.float32),
        "label": np.arange(16 // made.parts, dtype=np.int32) % 4,
    }
    return Plan(made.graph, NUMPY, kept).run(states, [inputs] * made.parts)


def rounded(graph: Graph) -> list[Node]:
    return [node for node in graph if isinstance(node.attributes, RoundToBfloat16Attributes)]


def test_values_of_the_batch_that_memory_holds_are_rounded_and_weights_are_not() -> None:
    """The bits of a training depend on which these are: they follow from the groups of the step."""
    graph = step(BF16).graph
    found = [node.operands[0] for node in rounded(graph)]
    assert found == ROUNDED
    assert not {node.name for node in graph if node.op in ("conv2d_weight_gradient", "mean", "state")} & set(found)


@each(
    [
        ("return relu(x @ w) @ w", "weight w: f32[16, 16]"),  # as wide as the batch is large; the gradient of w is a sum of two
        ("return dropout(x, 0.5) @ w + 0.01 * sum(w * w)", "weight w: f32[16, 16]"),
        ("return reshape(reshape(x, (batch * 4, 4)) @ w, (batch, 16))", "weight w: f32[4, 4]"),  # the batch is a part of an axis
    ]
)
def test_the_batch_is_told_from_other_axes_of_its_size(result: str, weight: str) -> None:
    text = (
        f"param batch = 16\nweights random(seed=1)\nmodel m(x: f32[batch, 16]):\n    {weight}\n    {result}\noptimizer sgd(rate=0.1)\n"
        "train(x: f32[batch, 16]) -> f32[]:\n    h = m(x)\n    return mean(h * h)\n"
    )
    graph = step_of(Source("net.tpu", text), {}, 1, BF16)[1].graph
    found = {node.operands[0] for node in rounded(graph)}
    products = {node.name: node.type.shape for node in graph if node.op == "matmul"}
    gradients = {name for name in products if name.startswith("d.w")}
    assert gradients
    assert not gradients & found
    assert "x" in found
    assert {name for name in products if not name.startswith("d.")} & found


@each([1, 2])
def test_what_reads_a_rounded_value_reads_it_everywhere(cores: int) -> None:
    graph = step(BF16, cores).graph
    for node in rounded(graph):
        assert {reader.name for reader in graph.users[node.operands[0]]} == {node.name}


def test_each_rounded_value_is_the_nearest_and_all_others_follow_from_it() -> None:
    made = step(BF16)
    names = [node.name for node in rounded(made.graph)]
    found = values(made, [*names, *(made.graph[name].operands[0] for name in names)])
    for name in names:
        exact = found[made.graph[name].operands[0]]
        assert np.array_equal(found[name], round_to_bfloat16(exact))
        assert np.array_equal(found[name].view(np.uint32) & 0xFFFF, np.zeros(exact.shape, np.uint32))


@each([BF16, ONE_PASS])
def test_a_step_is_near_the_plain_one(numerics: Numerics) -> None:
    plain, other = step(Numerics()), step(numerics)
    losses = [float(values(made, [])[loss_of(made.graph)]) for made in (plain, other)]
    assert losses[0] != losses[1]
    assert losses[1] == pytest.approx(losses[0], rel=0.02 if numerics is BF16 else 1e-4)


def test_statistics_in_one_pass_are_two_means_of_one_value() -> None:
    graph = step(ONE_PASS).graph
    means = [node for node in graph if node.op == "mean" and node.type.rank == 1]
    assert len(means) == 4
    assert sum(node.op == "maximum" for node in graph) == 2
    for convolution in (node for node in graph if node.op == "conv2d"):
        squares = {reader.name for reader in graph.users[convolution.name] if reader.operands == (convolution.name,) * 2}
        assert len([mean for mean in means if {*mean.operands} & {convolution.name, *squares}]) == 2


def test_a_variance_in_one_pass_is_never_negative() -> None:
    """Far from zero E[x²] - E[x]² loses all digits: then it is 0, and the root of epsilon divides."""
    text = NET.replace('padding="same"), gamma', 'padding="same") + 100000.0, gamma')
    made = step_of(Source("net.tpu", text), {}, 1, ONE_PASS)[1]
    assert np.isfinite(values(made, [])[loss_of(made.graph)])


def test_training_with_both_is_written_in_the_history_and_resumes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "net.tpu"
    model.write_text(NET + 'examples "net_train.npz"\n')
    draw = np.random.default_rng(1)
    np.savez(tmp_path / "net_train.npz", x=draw.normal(size=(64, 6, 5, 3)).astype(np.float32), label=(np.arange(64) % 4).astype(np.int32))
    choices = ["--activations", "bf16", "--statistics", "one-pass", "--target", "tpu_v2", "--quiet"]
    assert main(["train", str(model), "-o", str(tmp_path / "a"), "--steps", "4", *choices]) == 0
    assert main(["train", str(model), "-o", str(tmp_path / "b"), "--steps", "2", *choices]) == 0
    assert main(["train", str(model), "-o", str(tmp_path / "b"), "--steps", "2", "--resume", str(tmp_path / "b/state.npz"), *choices]) == 0
    assert (tmp_path / "a/weights.npz").read_bytes() == (tmp_path / "b/weights.npz").read_bytes()
    history = json.loads((tmp_path / "a/history.json").read_text())
    assert (history["activations"], history["statistics"]) == ("bf16", "one-pass")
    assert main(["compile", str(model), "--train", "-o", str(tmp_path / "c"), "--activations", "bf16"]) == 0
    assert "round_to_bfloat16(" in (tmp_path / "c/train.graph").read_text()
    capsys.readouterr()
    assert main(["compile", str(model), "-o", str(tmp_path / "c"), "--activations", "bf16"]) == 2
    assert "--activations is of a step of training" in capsys.readouterr().err


@each([({"activations": "bf8"}, "activations is f32 or bf16, found 'bf8'"), ({"statistics": 1}, "statistics")])
def test_other_choices_are_refused(choice: dict[str, object], message: str, tmp_path: Path) -> None:
    model = tmp_path / "net.tpu"
    model.write_text(NET)
    with pytest.raises(tpucc.UsageError, match=message):
        tpucc.train(model, **choice)  # type: ignore[arg-type]
