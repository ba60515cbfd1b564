"""The programs that come with tpucc are trained: a step of each, a short training, and what the committed weights come from."""

from __future__ import annotations

import hashlib
import importlib
import math
import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support.cases import one_of
from tests.support.kernels import KERNELS, printed
from tpucc.data.archive import npz_bytes

pytestmark = pytest.mark.filterwarnings("ignore::tpucc.api.InputWarning")
ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "programs"
COMMANDS: dict[str, str] = runpy.run_path(str(PROGRAMS / "train.py"))["COMMANDS"]
DIGITS = sorted(name for name in COMMANDS if "digits" in name)
PUBLISHED: dict[str, dict[str, int]] = {
    "07_mnist_cnn": {"batch": 2},
    "08_fashion_cnn": {"batch": 2},
    "09_cifar_resnet": {"batch": 2, "n": 1},
    "10_imdb_lstm": {"batch": 2, "time": 4, "words": 50},
}
"""Programs without examples, with params that make them small."""


def trained(name: str, **asked: Any) -> tpucc.Training:
    return tpucc.train(PROGRAMS / f"{name}.tpu", **asked)


def accuracy(made: tpucc.Training) -> float:
    return float(made.history["epochs"][-1]["held_out"]["accuracy"])


@pytest.mark.parametrize("name", one_of(2, PUBLISHED))
def test_published_shapes_take_a_step(name: str) -> None:
    made = trained(name, steps=1, params=PUBLISHED[name], target="tpu_v2")
    assert math.isfinite(made.history["epochs"][-1]["loss"])
    first = tpucc.train(PROGRAMS / f"{name}.tpu", steps=0, params=PUBLISHED[name])
    assert all((made.weights[key] != value).any() for key, value in first.weights.items() if key.endswith(("kernel", "embedding")))


@pytest.mark.parametrize(("name", "batch", "epochs", "right"), [("03_wine", 16, 8, 0.95), ("04_digits_mlp", 32, 3, 0.93)])
def test_a_short_training_is_on_its_way(name: str, batch: int, epochs: int, right: float) -> None:
    assert accuracy(trained(name, params={"batch": batch}, epochs=epochs, target="tpu_v2")) >= right


def test_a_recurrent_network_is_divided_among_cores() -> None:
    """Its first state, zeros times trained weights, has a batch and no input."""
    one, four = (trained("06_digits_lstm", params={"batch": 8}, steps=1, cores=cores) for cores in (1, 4))
    assert all(np.allclose(one.weights[key], four.weights[key], atol=1e-5) for key in one.weights)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_committed_weights_are_those_of_the_program(name: str) -> None:
    new = trained(name, steps=0)
    with np.load(PROGRAMS / f"{name}.npz") as archive:
        assert {key: archive[key].shape for key in archive} == {key: value.shape for key, value in new.weights.items()}


def digest_of_a_training() -> str:
    """Of states and histories after four steps: with batch norm, recurrent, and convolutional with dropout and Adam."""
    found = hashlib.sha256()
    for name, cores in (("05_digits_cnn", 1), ("06_digits_lstm", 4), ("14_digits_resnet", 2)):
        made = trained(name, params={"batch": 16}, steps=4, cores=cores, target="tpu_v2")
        found.update(made.state.to_bytes())
        found.update(repr(made.history).encode())
    return found.hexdigest()


@pytest.mark.long
@KERNELS
def test_a_training_has_the_same_bits_with_every_kernel_of_the_blas_and_any_threads(kernel: str, threads: int) -> None:
    assert printed(__file__, digest_of_a_training.__name__, kernel, threads) == digest_of_a_training()


NETWORKS: dict[str, tuple[str, str, tuple[object, ...]]] = {
    "02_iris": ("dense", "Dense", (2, "sigmoid")),
    "04_digits_mlp": ("dense", "Dense", (3,)),
    "05_digits_cnn": ("convolutional", "Convolutional", (2,)),
    "06_digits_lstm": ("recurrent", "Lstm", (64,)),
}
"""The networks of benchmarks/hand: module, class and arguments."""


@pytest.mark.parametrize("name", one_of(2, NETWORKS))
def test_networks_by_hand_are_the_programs(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What the benchmark compares training with has the same gradients; without dropout, which draws other numbers."""
    module, network, arguments = NETWORKS[name]
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    if name == "05_digits_cnn":
        arguments = (*arguments, importlib.import_module("hand.dense").Dense(2))
    text = (PROGRAMS / f"{name}.tpu").read_text().replace("dropout(h, 0.25)", "h")
    (tmp_path / "m.tpu").write_text(re.sub("(?m)^optimizer .*", "optimizer sgd(rate=0.1)", text))
    with np.load(PROGRAMS / f"{name}_train.npz") as archive:
        examples = {key: archive[key][:32] for key in archive}
    first = next(iter(examples))
    examples[first] = (examples[first] + np.random.default_rng(0).random(examples[first].shape, np.float32)) / 2  # pools have no ties
    new, made = (tpucc.train(tmp_path / "m.tpu", steps=steps, params={"batch": 32}, examples=examples) for steps in (0, 3))
    parameters = {key: value.copy() for key, value in new.weights.items()}
    by_hand = getattr(importlib.import_module(f"hand.{module}"), network)(*arguments)
    for _ in range(3):
        importlib.import_module("hand.descent").Sgd(0.1).update(parameters, by_hand.gradients(parameters, *examples.values()))
    assert all(np.allclose(parameters[key], value, atol=1e-5) for key, value in made.weights.items())


@pytest.mark.soak
@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_commands_give_the_committed_weights(name: str) -> None:
    """To the byte; and enough of the held-out rows are right, in 8 bits too."""
    made = by_command(name, target="tpu_v2")
    assert npz_bytes(made.weights) == (PROGRAMS / f"{name}.npz").read_bytes()
    floor = 0.97 if name in DIGITS else 0.95
    assert accuracy(made) >= floor
    exe = tpucc.compile(PROGRAMS / f"{name}.tpu")
    with np.load(PROGRAMS / f"{name}_test.npz") as archive:
        (x, labels) = (archive[key] for key in archive)
    (found,) = exe.run(x).values()
    assert (found.argmax(axis=1) == labels).mean() >= floor


@pytest.mark.soak
@pytest.mark.parametrize(("target", "cores"), [("host", 1), ("tpu_v2", 8)])
@pytest.mark.parametrize("name", DIGITS)
def test_digits_are_learnt_everywhere(name: str, target: str, cores: int) -> None:
    assert accuracy(by_command(name, target=target, cores=cores)) >= 0.97


def by_command(name: str, **asked: Any) -> tpucc.Training:
    """The training of the command, on another target."""
    words = COMMANDS[name].split()
    given = {word: words[place + 1] for place, word in enumerate(words) if word.startswith("-")}
    params = {"batch": int(given["-D"].removeprefix("batch="))}
    return trained(name, params=params, epochs=int(given["--epochs"]), seed=int(given.get("--seed", 0)), **asked)
