"""Training against PyTorch: the gradients of whole networks, and a hundred steps with the same batches.

PyTorch in float64 is the judge of the gradients, so that what differs is the rounding of our float32 alone; PyTorch in float32 says how
much that may be. Needs the extra `torch`; `pytest -m torch` runs only this.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tpucc.diagnostics import Source
from tpucc.language.elaborate import elaborate
from tpucc.language.parse import parse
from tpucc.numerics import AnyArray
from tpucc.training.passes.names import GRADIENT, key_of, states, values_of
from tpucc.training.plan import Plan
from tpucc.training.session import Session, Settings

torch = pytest.importorskip("torch", reason="PyTorch is not installed; it comes with the extra: pip install -e '.[dev,torch]'")

import torch.nn.functional as F  # noqa: E402  only where there is torch

from tests.support import torch_models  # noqa: E402

pytestmark = pytest.mark.torch

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"
EPSILON = float(np.finfo(np.float32).eps)
TRAIN = """
optimizer {optimizer}
train({input}, label: i32[batch] in [0, 9]) -> f32[]:
    return cross_entropy({model}, label)
"""


def lstm(w: Any, image: Any) -> Any:
    """The logits of the digits LSTM, step by step, so that gradients go through: gates in the order i, f, g, o."""
    units = w["lstm.recurrent"].shape[0]
    h = c = torch.zeros(image.shape[0], units, dtype=image.dtype)
    for t in range(image.shape[1]):
        i, f, g, o = (image[:, t] @ w["lstm.kernel"] + h @ w["lstm.recurrent"] + w["lstm.bias"]).chunk(4, dim=1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
    return torch_models.dense(h, w, "fc", "w b")


def resnet(w: Any, image: Any) -> Any:
    """ResNet-20 with the statistics of its batch."""
    original = torch_models.conv_bn

    def conv_bn(x: Any, w: Any, name: str, stride: int, padding: str | int, epsilon: float) -> Any:
        x = torch_models.conv(x, w[f"{name}.kernel"], None, stride, padding)
        return F.batch_norm(x, None, None, w[f"{name}.gamma"], w[f"{name}.beta"], training=True, eps=epsilon)

    torch_models.conv_bn = conv_bn
    try:
        return torch_models.cifar_resnet(w, image)
    finally:
        torch_models.conv_bn = original


NETWORKS: dict[str, tuple[str, str, Callable[..., Any]]] = {
    "05_digits_cnn": ("image: f32[batch, 8, 8, 1] in [0.0, 1.0]", "digits_cnn(image)", torch_models.digits_cnn),
    "06_digits_lstm": ("image: f32[batch, 8, 8] in [0.0, 1.0]", "digits_lstm(image)", lstm),
    "09_cifar_resnet": ("image: f32[batch, 32, 32, 3]", "cifar_resnet(image)", resnet),
}


def session(name: str, batch: int, optimizer: str = "sgd(rate=0.01)", count: int = 0) -> Session:
    """A training of a program, without dropout, on made-up examples."""
    given, call, _ = NETWORKS[name]
    text = (PROGRAMS / f"{name}.tpu").read_text().split("\nexamples ")[0].split("\noptimizer ")[0].split("\ntrain(")[0]
    lines = [line for line in text.split("\n") if "dropout(" not in line]
    source = Source(f"{name}.tpu", "\n".join(lines) + TRAIN.format(input=given, model=call, optimizer=optimizer))
    model = elaborate(parse(source), source, {"batch": str(batch)})
    assert model.training is not None
    types = {node.name: node.type for node in model.training.graph.inputs}
    random = np.random.default_rng(5)
    rows = count or batch
    image = np.resize(random.random((min(rows, 160), *types["image"].shape[1:]), np.float32), (rows, *types["image"].shape[1:]))
    label = (image.reshape(rows, -1)[:, :10]).argmax(axis=1).astype(np.int32)
    return Session(model, source, PROGRAMS, name, Settings(seed=3, steps=100, examples={"image": image, "label": label}))


def tensors(weights: dict[str, AnyArray], precision: Any) -> dict[str, Any]:
    return {key: torch.from_numpy(np.array(value)).to(precision).requires_grad_() for key, value in weights.items()}


def loss_of(network: Callable[..., Any], weights: dict[str, Any], part: dict[str, AnyArray], precision: Any) -> Any:
    image = torch.from_numpy(part["image"].copy()).to(precision)
    return F.cross_entropy(network(weights, image), torch.from_numpy(part["label"].astype(np.int64)))


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_are_pytorchs_but_for_rounding(name: str) -> None:
    made = session(name, batch=8)
    graph = next(stage.graph for stage in made.step.stages if stage.name == "differentiate")
    part = made.examples.parts(3, 0, 1)[0]
    values = Plan(graph, made.arithmetic).run({node.name: made.state.values[key_of(node)] for node in states(graph)}, [part])
    ours = {key_of(graph[state]): values[node] for state, node in values_of(graph, GRADIENT).items()}
    exact, rounded = (dict[str, AnyArray](), dict[str, AnyArray]())
    for precision, into in ((torch.float64, exact), (torch.float32, rounded)):
        weights = tensors(made.trained, precision)
        loss_of(NETWORKS[name][2], weights, part, precision).backward()
        into.update({key: weight.grad.numpy() for key, weight in weights.items() if weight.grad is not None})
    assert ours.keys() == exact.keys()
    for key, gradient in ours.items():
        scale = max(float(np.abs(exact[key]).max()), 1e-6)
        found, allowed = (float(np.abs(g.astype(np.float64) - exact[key]).max()) / scale / EPSILON for g in (gradient, rounded[key]))
        assert found < 4 * allowed + 32, key


@pytest.mark.parametrize(
    ("name", "optimizer"), [("05_digits_cnn", "adam(rate=0.002)"), ("06_digits_lstm", "rmsprop(rate=0.002, momentum=0.5)")]
)
def test_a_hundred_steps_follow_pytorch(name: str, optimizer: str) -> None:
    """The loss curves of one training, with the same batches: they part slowly, as roundings add up."""
    made = session(name, batch=16, optimizer=optimizer, count=16 * 101)
    weights = tensors(made.trained, torch.float32)
    if optimizer.startswith("adam"):
        step: Any = torch.optim.Adam(weights.values(), lr=0.002, eps=1e-8)
    else:
        step = None
    slots = {key: (torch.zeros_like(w), torch.zeros_like(w)) for key, w in weights.items()}
    theirs = []
    for number in range(100):
        loss = loss_of(NETWORKS[name][2], weights, made.examples.parts(3, number, 1)[0], torch.float32)
        theirs.append(loss.item())
        for weight in weights.values():
            weight.grad = None
        loss.backward()
        if step is not None:
            step.step()
            continue
        with torch.no_grad():  # torch's RMSprop has epsilon outside the root, ours inside
            for key, weight in weights.items():
                squares, velocity = slots[key]
                squares.mul_(0.9).addcmul_(weight.grad, weight.grad, value=0.1)
                velocity.mul_(0.5).add_(0.002 * weight.grad / (squares + 1e-8).sqrt())
                weight.sub_(velocity)
    ours = [made.state.losses[-1] for _ in made.run()]
    assert ours[0] == pytest.approx(theirs[0], rel=1e-5)
    assert np.allclose(ours[:20], theirs[:20], rtol=1e-3)
    assert np.allclose(ours, theirs, rtol=0.1, atol=0.02)
    assert ours[-1] < 0.9 * ours[0]
