"""Training: sessions that stop and go on, that divide the batch, that meet what isn't finite; and what is refused before the first step."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support.cases import each, one_of
from tpucc.data.archive import Archive
from tpucc.diagnostics import CompileError, Error, InputError, TrainingError, UsageError
from tpucc.floating.all_reduce import all_reduce_steps
from tpucc.ir.parser import parse_graph
from tpucc.numerics import AnyArray
from tpucc.ops import OPS
from tpucc.training.examples import Examples
from tpucc.training.passes.names import GRADIENT, NEXT, key_of, states, values_of
from tpucc.training.plan import Plan
from tpucc.training.session import Settings
from tpucc.training.start import started
from tpucc.training.state import Grown

NETWORK = """
param batch = 16
weights random(seed=0)
optimizer OPTIMIZER

def dense(x, units, name):
    weight w: f32[x.shape[-1], units] = "{name}.w"
    weight b: f32[units] = "{name}.b"
    return x @ w + b

model net(x: f32[batch, 4]) -> f32[batch, 3]:
    h = BODY
    return softmax(dense(h, 3, "fc2"))

train(x: f32[batch, 4], label: i32[batch] in [0, 2]) -> f32[]:
    return cross_entropy(net(x), label)
"""
HIDDEN = 'tanh(dense(x, 8, "fc1"))'
NORMALISED = """dense(x, 8, "fc1")
    weight gamma: f32[8]
    weight beta: f32[8]
    weight mean: f32[8]
    weight variance: f32[8]
    h = relu(batch_norm(h, gamma, beta, mean, variance, momentum=0.9))"""
DROPPED = 'dropout(relu(dense(x, 8, "fc1")), 0.25)'
OPTIMIZERS = ["sgd(rate=0.1)", "momentum(rate=0.05)", "rmsprop(rate=0.01, momentum=0.5)", "adam(rate=0.02)"]


def source(folder: Path, body: str = HIDDEN, optimizer: str = "adam(rate=0.02)", text: str = NETWORK) -> Path:
    path = folder / "net.tpu"
    path.write_text(text.replace("BODY", body).replace("OPTIMIZER", optimizer))
    return path


def examples(count: int = 50, seed: int = 0) -> dict[str, AnyArray]:
    """Points in four dimensions, in three classes by their largest of three coordinates."""
    x = np.random.default_rng(seed).standard_normal((count, 4)).astype(np.float32)
    return {"x": x, "label": x[:, :3].argmax(axis=1).astype(np.int32)}


def trained(path: Path, **asked: Any) -> tpucc.Training:
    return tpucc.train(path, **({"examples": examples()} | asked))


def same(one: Mapping[str, AnyArray], other: Mapping[str, AnyArray]) -> bool:
    return one.keys() == other.keys() and all(one[key].tobytes() == other[key].tobytes() for key in one)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("body", [HIDDEN, NORMALISED, DROPPED], ids=["plain", "batch norm", "dropout"])
def test_the_loss_falls(tmp_path: Path, body: str, optimizer: str) -> None:
    epochs = trained(source(tmp_path, body, optimizer), epochs=12).history["epochs"]
    assert epochs[-1]["loss"] < 0.8 * epochs[0]["loss"]


@pytest.mark.parametrize(
    ("body", "target"),
    one_of(3, [(NORMALISED, "tpu_v2"), (NORMALISED, "host"), (DROPPED, "host"), (DROPPED, "tpu_v2"), (HIDDEN, "tpu_v2"), (HIDDEN, "host")]),
)
def test_going_on_gives_the_bits_of_not_stopping(tmp_path: Path, body: str, target: str) -> None:
    path = source(tmp_path, body)
    whole = trained(path, steps=11, target=target)
    trained(path, steps=4, target=target).save(tmp_path / "first")
    rest = trained(path, steps=7, target=target, resume=tmp_path / "first" / "state.npz")
    rest.save(tmp_path / "second")
    whole.save(tmp_path / "whole")
    for name in ("weights.npz", "state.npz", "history.json"):
        assert (tmp_path / "second" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert same(whole.state.values, rest.state.values)
    assert whole.state.epochs == rest.state.epochs


@pytest.mark.parametrize("body", [HIDDEN, NORMALISED, DROPPED], ids=["plain", "batch norm", "dropout"])
def test_cores_are_microbatches(tmp_path: Path, body: str) -> None:
    path = source(tmp_path, body)
    one = trained(path, steps=5, target="tpu_v2", cores=4)
    assert same(one.state.values, trained(path, steps=5, target="tpu_v2", microbatches=4).state.values)
    assert same(one.state.values, trained(path, steps=5, target="tpu_v2", cores=2, microbatches=2).state.values)
    whole = trained(path, steps=5, target="tpu_v2")
    assert not same(one.state.values, whole.state.values)
    if body is not NORMALISED:  # each core has the statistics of its own items
        for key, value in whole.weights.items():
            assert np.allclose(value, one.weights[key], atol=1e-2)


def test_dropout_draws_the_same_whoever_shares_the_batch(tmp_path: Path) -> None:
    text = NETWORK.replace("BODY", "dropout(x, 0.5)").replace("OPTIMIZER", "sgd(rate=0.1)")
    path = source(tmp_path, text=text)
    one, four = (trained(path, steps=1, cores=cores) for cores in (1, 4))
    assert all(np.allclose(one.weights[key], four.weights[key], atol=1e-6) for key in one.weights)
    assert not same(one.weights, trained(path, steps=1, seed=1).weights)


def test_every_core_has_the_same_mean_of_gradients(tmp_path: Path) -> None:
    """Core by core, with the messages of recursive halving, as the plan computes it at once."""
    text = source(tmp_path, NORMALISED).read_text()
    session = started(tpucc.Source("net.tpu", text), tmp_path, "net", {}, Settings(cores=4, examples=examples(), target="tpu_v2"))
    own, reduced = (next(s.graph for s in session.step.stages if s.name == name) for name in ("differentiate", "all-reduce"))
    given = {node.name: session.state.values.get(key_of(node), np.zeros(node.type.shape, np.float32)) for node in states(own)}
    parts = session.examples.parts(seed=0, step=0, parts=4)
    plan = Plan(own, session.arithmetic)
    found = [plan.run(given, [part]) for part in parts]
    mean = Plan(reduced, session.arithmetic).run(given, parts)
    assert len(own.outputs) == 9
    for one, all_ in zip(own.outputs, reduced.outputs, strict=True):
        cores = all_reduce_steps([np.atleast_1d(values[one.node]) for values in found])
        assert {core.tobytes() for core in cores} == {mean[all_.node].tobytes()}
        assert len({values[one.node].tobytes() for values in found}) == 4


def test_the_step_graph_prints_and_reads_back(tmp_path: Path) -> None:
    graph = trained(source(tmp_path, NORMALISED), steps=1, cores=2).step.value
    text = str(graph)
    again = parse_graph(text, "step.graph", {name: known.attributes for name, known in OPS.items()})
    assert str(again) == text
    assert {output.name for output in graph.outputs} == {"loss", *(NEXT + node.name for node in states(graph))}
    assert {"mean", "variance"} <= {key_of(node) for node in states(graph)}


def test_two_runs_in_two_folders_write_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        trained(source(tmp_path / name), epochs=2, target="tpu_v2").save(tmp_path / name / "out")
    for name in ("weights.npz", "state.npz", "history.json"):
        assert (tmp_path / "one" / "out" / name).read_bytes() == (tmp_path / "two" / "out" / name).read_bytes()


def test_weights_go_into_the_integer_machine(tmp_path: Path) -> None:
    path = source(tmp_path)
    trained(path, epochs=20).save(tmp_path / "out")
    held = examples(200, seed=7)
    exe = tpucc.compile(path, weights=tmp_path / "out" / "weights.npz")
    right = exe.run(x=held["x"])["out"].argmax(axis=1) == held["label"]
    assert right.mean() > 0.8


def test_fixed_weights_stay(tmp_path: Path) -> None:
    text = NETWORK.replace('= "{name}.b"', '= "{name}.b" fixed').replace("BODY", HIDDEN).replace("OPTIMIZER", "sgd(rate=0.1)")
    made = trained(source(tmp_path, text=text), steps=3)
    assert not made.weights["fc1.b"].any()
    assert not any(key.startswith("sgd") for key in made.state.values)


def test_a_state_has_the_fixed_weights_too(tmp_path: Path) -> None:
    text = NETWORK.replace('= "{name}.b"', '= "{name}.b" fixed').replace("BODY", HIDDEN).replace("OPTIMIZER", "adam(rate=0.1)")
    path = source(tmp_path, text=text)
    trained(path, steps=1).save(tmp_path / "one")
    given = dict(np.load(tmp_path / "one" / "weights.npz")) | {"fc1.b": np.full(8, 0.25, np.float32)}
    np.savez(tmp_path / "given.npz", **given)
    whole = trained(path, steps=5, weights=tmp_path / "given.npz")
    trained(path, steps=2, weights=tmp_path / "given.npz").save(tmp_path / "two")
    assert same(trained(path, steps=3, resume=tmp_path / "two" / "state.npz").weights, whole.weights)
    assert (whole.weights["fc1.b"] == 0.25).all()


def test_fixed_weights_are_those_of_the_state(tmp_path: Path) -> None:
    """They were drawn from its seed, or read from an archive."""
    text = NETWORK.replace('= "{name}.w"', '= "{name}.w" fixed').replace("weights random(seed=0)\n", "")
    path = source(tmp_path, text=text.replace("BODY", HIDDEN).replace("OPTIMIZER", "sgd(rate=0.1)"))
    first = trained(path, steps=1, seed=5)
    first.save(tmp_path / "out")
    state = tmp_path / "out" / "state.npz"
    assert same(first.weights, trained(path, steps=0, resume=state).weights)
    others: dict[str, Any] = {key: value + 1 for key, value in first.weights.items()}
    np.savez(tmp_path / "given.npz", **others)
    given = trained(path, steps=2, weights=tmp_path / "given.npz")
    trained(path, steps=1, weights=tmp_path / "given.npz").save(tmp_path / "out")
    assert trained(path, steps=1, resume=state).state.to_bytes() == given.state.to_bytes()


def test_the_first_value_that_is_not_finite_is_named(tmp_path: Path) -> None:
    with pytest.raises(TrainingError) as caught:
        trained(source(tmp_path, 'dense(x, 8, "fc1") * 1e30', "sgd(rate=1e30)"), steps=5)
    (found,) = caught.value.diagnostics
    assert found.code == "E0944"
    assert found.span is not None
    assert "step" in found.message


def refused(kind: type[Error], path: Path, **asked: Any) -> str:
    with pytest.raises(kind) as caught:
        trained(path, **asked)
    return caught.value.diagnostics[0].code


def test_examples_outside_the_folder_are_named_by_their_option(tmp_path: Path) -> None:
    path = source(tmp_path, text=f'examples "../far.npz"\n{NETWORK}')
    with pytest.raises(tpucc.CompileError) as caught:
        tpucc.train(path)
    (found,) = caught.value.diagnostics
    assert (found.code, found.help[0].split(": ")[1]) == ("E0428", "--examples ../far.npz")


def test_what_is_refused_before_the_first_step(tmp_path: Path) -> None:
    path = source(tmp_path)
    assert refused(UsageError, path, cores=3) == "E0947"
    assert refused(UsageError, path, cores=32) == "E0508"
    assert refused(UsageError, path, target="tpu_v1") == "E0946"
    assert refused(InputError, path, examples=examples(9)) == "E0942"
    assert refused(InputError, path, examples={"x": examples()["x"]}) == "E0441"
    assert refused(InputError, path, examples=examples() | {"label": examples(20)["label"]}) == "E0447"
    assert refused(InputError, path, examples=examples() | {"x": examples()["x"][:, :3]}) == "E0443"


def test_no_gradient_goes_through_integers(tmp_path: Path) -> None:
    text = NETWORK.replace("cross_entropy(net(x), label)", "mean(quantize(net(x), scale=0.1))")
    with pytest.raises(CompileError):
        trained(source(tmp_path, text=text.replace("BODY", HIDDEN).replace("OPTIMIZER", "sgd(rate=0.1)")))


FLAT = """
weights random(seed=0)
optimizer sgd(rate=0.1)
model m(x: f32[8, 4]):
    weight w: f32[4, 3]
    weight v: f32[4, 3]
    return BODY
train(x: f32[8, 4]) -> f32[]:
    return mean(m(x), (0, 1))
"""


def test_a_loss_that_is_flat_in_all_weights_is_refused(tmp_path: Path) -> None:
    path = source(tmp_path, text=FLAT, body="sign(x @ w) + sign(x @ w * 2.0)")
    with pytest.raises(CompileError, match="the loss depends on w through sign: the gradient of sign is 0") as caught:
        trained(path, steps=1)
    assert [found.code for found in caught.value.diagnostics] == ["E0940"]


@pytest.mark.filterwarnings("ignore:.*training doesn't change w")
def test_weights_that_get_no_gradient_are_named(tmp_path: Path) -> None:
    path = source(tmp_path, text=FLAT, body="where(x @ w > 0.0, x @ v, 0.0)")
    assert "line 7: training doesn't change w: the gradient of where is 0" in notes(path, tmp_path, examples={"x": examples()["x"]})
    given = {"x": examples()["x"]}
    made = trained(path, steps=1, examples=given)
    moved = {key: made.weights[key].tobytes() != value.tobytes() for key, value in trained(path, steps=0, examples=given).weights.items()}
    assert moved == {"w": False, "v": True}


def test_statistics_move_where_nothing_else_is_trained(tmp_path: Path) -> None:
    path = source(tmp_path, NORMALISED)
    path.write_text(re.sub(r"(weight (?!mean|variance).*)", r"\1 fixed", path.read_text()))
    before, after = (trained(path, steps=steps, cores=2).weights for steps in (0, 1))
    assert {key for key, value in after.items() if value.tobytes() != before[key].tobytes()} == {"mean", "variance"}


UNREAD = """
weights random(seed=0)
optimizer sgd(rate=0.1)
model m(x: f32[16, 4]):
    weight w: f32[4, 3]
    weight gamma: f32[3]
    weight beta: f32[3]
    weight mean: f32[3]
    weight variance: f32[3]
    y = x @ w
    BODY
train(x: f32[16, 4], label: i32[16]) -> f32[]:
    y = m(x)
    return cross_entropy(softmax(y), label)
"""


def test_outputs_that_the_loss_does_not_read_change_nothing(tmp_path: Path) -> None:
    """One is of integers, one draws random numbers, and one would move statistics, whoever shares the batch."""
    alone = trained(source(tmp_path, "return y", text=UNREAD), steps=3, microbatches=2)
    more = "return y, argmax(y), dropout(y, 0.5), batch_norm(y, gamma, beta, mean, variance)"
    path = source(tmp_path, more, text=UNREAD.replace("    y = m(x)", "    y, place, dropped, normalised = m(x)"))
    first = trained(path, steps=0).weights
    for cores, microbatches in ((2, 1), (1, 2), (1, 1)):
        made = trained(path, steps=3, cores=cores, microbatches=microbatches)
        assert cores * microbatches == 1 or made.weights["w"].tobytes() == alone.weights["w"].tobytes()
        assert {key for key, value in made.weights.items() if value.tobytes() != first[key].tobytes()} == {"w"}


def test_a_source_without_training_says_what_to_write(tmp_path: Path) -> None:
    text = NETWORK[: NETWORK.index("train(")].replace("BODY", HIDDEN).replace("optimizer OPTIMIZER\n", "")
    given = examples()
    for end, values in (("softmax(dense(h, 3, ", "net(x)"), ("relu(dense(h, 3, ", "softmax(net(x))")):
        ended = text.replace("softmax(dense(h, 3, ", end)
        with pytest.raises(CompileError, match="E0945") as caught:
            trained(source(tmp_path, text=ended))
        train, loss = "train(x: f32[batch, 4], labels: i32[batch]) -> f32[]:", f"return cross_entropy({values}, labels)"
        assert caught.value.diagnostics[0].help == (f"write `{train}`, and in it `{loss}`",)
        trained(
            source(tmp_path, text=f"{ended}\noptimizer sgd(rate=0.1)\n{train}\n    {loss}\n"),
            steps=1,
            examples={"x": given["x"], "labels": given["label"]},
        )
    one = text.replace("f32[batch, 3]", "f32[batch, 1]").replace('softmax(dense(h, 3, "fc2"))', 'dense(h, 1, "fc2")')
    with pytest.raises(CompileError, match=r"train\(x: f32\[batch, 4\], labels: f32\[batch, 1\]\)"):
        trained(source(tmp_path, text=one))


@pytest.mark.filterwarnings("ignore:.*expects probabilities")
@pytest.mark.parametrize(
    ("body", "end", "x", "mend"),
    [
        ("x", "relu(0 * ", 1.0, "write cross_entropy(softmax(…), label)"),
        ('dense(x, 8, "fc1") * 1e30', "softmax(", 1e30, "no weight has changed yet"),
    ],
)
def test_the_rate_is_not_blamed_for_the_first_loss(tmp_path: Path, body: str, end: str, x: float, mend: str) -> None:
    text = source(tmp_path, body, "sgd(rate=0.1)", NETWORK.replace("softmax(", end)).read_text()
    with pytest.raises(TrainingError, match="E0944: in step 1") as caught:
        trained(source(tmp_path, text=text), steps=1, examples=examples() | {"x": examples()["x"] * np.float32(x)})
    (help_,) = caught.value.diagnostics[0].help
    assert mend in help_
    assert "rate" not in help_


def test_a_state_of_another_training_is_refused(tmp_path: Path) -> None:
    path = source(tmp_path)
    trained(path, steps=1).save(tmp_path / "out")
    state = tmp_path / "out" / "state.npz"
    assert refused(InputError, source(tmp_path, optimizer="sgd(rate=0.1)"), resume=state) == "E0943"
    arrays = dict(np.load(state))
    np.savez(state, **{key: value for key, value in arrays.items() if key != "history"})
    assert refused(InputError, source(tmp_path), resume=state) == "E0943"


def test_history_has_what_a_page_draws(tmp_path: Path) -> None:
    path = source(tmp_path)
    np.savez(tmp_path / "net_test.npz", x=examples(40, 3)["x"], labels=examples(40, 3)["label"])
    history = json.loads(json.dumps(trained(path, epochs=2).history))
    last = history["epochs"][-1]
    assert last["number"] == 2
    assert 0 <= last["held_out"]["accuracy"] <= 1
    assert last["gradients"].keys() == last["ranges"].keys() == {"fc1.w", "fc1.b", "fc2.w", "fc2.b"}
    assert all(norm > 0 for norm in last["gradients"].values())


def test_gradients_that_meet_are_added_in_the_order_of_the_uses(tmp_path: Path) -> None:
    path = tmp_path / "net.tpu"
    path.write_text("""
weights random(seed=0)
optimizer sgd(rate=0.1)
model net(a: f32[4, 2], b: f32[4, 2], c: f32[4, 2]):
    weight w: f32[4, 2]
    return a * w, b * w, c * w

train(a: f32[4, 2], b: f32[4, 2], c: f32[4, 2]) -> f32[]:
    x, y, z = net(a, b, c)
    return mean(z) + mean(y) + mean(x)
""")
    session = started(tpucc.Source("net.tpu", path.read_text()), tmp_path, "net", {}, Settings())
    graph = next(stage.graph for stage in session.step.stages if stage.name == "differentiate")
    (gradient,) = values_of(graph, GRADIENT).values()
    first_two, third = graph.operands(graph[gradient])
    first, second = graph.operands(first_two)
    assert [next(name for name in node.operands if name in "abc") for node in (first, second, third)] == ["a", "b", "c"]


def notes(path: Path, folder: Path, **asked: Any) -> str:
    settings = Settings(**({"examples": examples()} | asked))
    return "\n".join(started(tpucc.Source("net.tpu", path.read_text()), folder, "net", {}, settings).notes)


def test_what_is_probably_a_mistake_gets_a_note(tmp_path: Path) -> None:
    path = source(tmp_path)
    assert not notes(path, tmp_path)
    assert "15 of 31 examples are left out of each epoch, which has 1 step of 16" in notes(path, tmp_path, examples=examples(31))
    assert "the source names no examples" in notes(path, tmp_path, examples=None)
    ranged = path.read_text().replace("model net(x: f32[batch, 4])", "model net(x: f32[batch, 4] in [0.0, 1.0])")
    path.write_text(ranged)
    assert "outside [0, 1], the range that the source declares, and training takes them as they are" in notes(path, tmp_path)
    assert "found -1 to 0:" in notes(
        path, tmp_path, examples=examples() | {"x": np.full((50, 4), -0.0, np.float32) - np.eye(50, 4, dtype=np.float32)}
    )
    np.savez(tmp_path / "net_test.npz", x=examples()["x"], label=examples()["label"])
    assert "net_test.npz has no array labels, which accuracy is measured by; it has label and x" in notes(path, tmp_path)
    assert refused(InputError, path, held_out=tmp_path / "net_test.npz") == "E0441"


def test_a_state_takes_no_other_seed_or_weights(tmp_path: Path) -> None:
    path = source(tmp_path)
    trained(path, steps=1).save(tmp_path / "out")
    for other in ({"seed": 5}, {"weights": tmp_path / "out" / "weights.npz"}):
        assert refused(UsageError, path, resume=tmp_path / "out" / "state.npz", **other) == "E0529"


def test_weights_are_saved_though_the_page_cannot_be_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = trained(source(tmp_path), steps=1)
    monkeypatch.setattr("tpucc.training_page.training_page", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        made.save(tmp_path / "out")
    assert {file.name for file in (tmp_path / "out").iterdir()} == {"weights.npz", "state.npz", "history.json"}


@pytest.mark.parametrize("steps", [1, 3], ids=["the last step", "the last of an epoch"])
def test_weights_that_are_not_finite_are_an_error(tmp_path: Path, steps: int) -> None:
    """The loss of the step that makes them is finite."""
    with pytest.raises(TrainingError, match=r"E0944: in step 1, .* is infinite") as caught:
        trained(source(tmp_path, optimizer="sgd(rate=3e38)"), steps=1, examples={**examples(16), "x": examples(16)["x"] * 100})
    assert caught.value.diagnostics[0].span is not None


def page(made: tpucc.Training, folder: Path) -> str:
    made.save(folder)
    return (folder / "report.html").read_text()


@pytest.mark.long
def test_a_page_of_a_training_that_changed_on_the_way(tmp_path: Path) -> None:
    """The held-out set came later, and a weight that has no gradient had one; a weight that is there now is refused."""
    path, state = source(tmp_path), tmp_path / "out" / "state.npz"
    trained(path, epochs=1).save(tmp_path / "out")
    np.savez(tmp_path / "net_test.npz", x=examples(40, 3)["x"], labels=examples(40, 3)["label"])
    made = trained(path, epochs=1, resume=state)
    assert [len(epoch["held_out"]) for epoch in made.history["epochs"]] == [0, 1]
    assert "<title>epoch 2: " in page(made, tmp_path / "out")
    text = path.read_text()
    path.write_text(text.replace("    return softmax", "    h = h * (h > 0.0) * 0.0 + sign(h)\n    return softmax"))
    with pytest.warns(tpucc.api.InputWarning, match="of another step"):
        made = trained(path, epochs=1, resume=state)
    assert 'id="weights"' in page(made, tmp_path / "out")
    path.write_text(text.replace("    return softmax", "    weight f: f32[8] fixed\n    h = h + f\n    return softmax"))
    assert refused(InputError, path, resume=state) == "E0943"


def test_a_loss_that_is_a_bare_weight(tmp_path: Path) -> None:
    path = tmp_path / "net.tpu"
    path.write_text("""
weights random(seed=0)
optimizer sgd(rate=0.1)
model net(x: f32[4, 2]) -> f32[4, 2]:
    return relu(x)

train(x: f32[4, 2]) -> f32[]:
    weight w: f32[]
    return w
""")
    assert 'id="weights"' in page(trained(path, epochs=1, examples={"x": np.ones((4, 2))}), tmp_path / "out")


def epoch(**changes: Any) -> dict[str, Any]:
    return {"number": 1, "loss": 1.0, "losses": [1.0], "held_out": {}, "gradients": {}, "ranges": {}} | changes


def history(text: str | None = None, **changes: Any) -> AnyArray:
    text = text if text is not None else json.dumps({"epochs": [epoch()], "graph": ""} | changes, separators=(",", ":"))
    return np.frombuffer(text.encode(), np.uint8)


FORGED: dict[str, tuple[dict[str, Any], str]] = {
    "a huge seed": ({"seed": np.int64(2**31)}, "seed is 2,147,483,648, expected 0 to"),
    "a negative step": ({"step": np.int64(-1)}, "step is -1, expected 0 to"),
    "a fractional step": ({"step": np.float64(1.5)}, "step is float64\\[\\], expected int64"),
    "several ends": ({"until": np.ones(2, np.int64)}, "until is int64\\[2\\], expected int64"),
    "a table of losses": ({"losses": np.ones((1, 1), np.float32)}, "losses is float32\\[1, 1\\], expected float32"),
    "an infinite loss": ({"losses": np.full(1, np.inf, np.float32)}, "losses has values that are infinite"),
    "losses of more steps than are done": (
        {"losses": np.ones(2, np.float32)},
        "losses of 2 steps of an epoch, and of this epoch 1 of 3 steps",
    ),
    "a weight that is no number": ({"state/fc2.b": np.full(3, np.nan, np.float32)}, "fc2.b has values that are infinite or not"),
    "a weight in double precision": ({"state/fc2.b": np.ones(3)}, "fc2.b is float64\\[3\\], expected float32\\[3\\]"),
    "another key": ({"other": np.ones(3)}, "other is not a state of this training"),
    "a deep history": ({"history": history("[" * 100_000)}, "its history isn't one"),
    "a history that is no text": ({"history": np.frombuffer(b"\xff", np.uint8)}, "its history isn't one"),
    "epochs that are a number": ({"history": history(epochs=1)}, "its history isn't one"),
    "an epoch that is a number": ({"history": history(epochs=[1])}, "its history isn't one"),
    "an epoch without steps": ({"history": history(epochs=[epoch(losses=[])])}, "its history isn't one"),
    "an epoch's loss that is a text": ({"history": history(epochs=[epoch(loss="1")])}, "its history isn't one"),
    "a range of three": ({"history": history(epochs=[epoch(ranges={"w": [1.0, 2.0, 3.0]})])}, "its history isn't one"),
    "an infinite norm": ({"history": history(epochs=[epoch(gradients={"w": np.inf})])}, "its history isn't one"),
    "an epoch with a field too many": ({"history": history(epochs=[epoch(time=1.0)])}, "its history isn't one"),
    "a whole number of loss": ({"history": history(epochs=[epoch(loss=1)])}, "its history isn't one"),
    "a measure of another kind": ({"history": history(epochs=[epoch(held_out={"auc": 1.0})])}, "its history isn't one"),
}


@pytest.fixture(scope="module")
def one_step(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a training of one step writes."""
    folder = tmp_path_factory.mktemp("one step")
    trained(source(folder, "x", "sgd(rate=0.1)"), steps=1).save(folder / "out")
    return folder / "out"


@each(FORGED)
def test_a_state_with_a_wrong_field_is_refused(changes: Mapping[str, AnyArray], words: str, tmp_path: Path, one_step: Path) -> None:
    path = source(tmp_path, "x", "sgd(rate=0.1)")
    np.savez(tmp_path / "forged.npz", **{**np.load(one_step / "state.npz"), **changes})
    with pytest.raises(InputError, match=f"E0943: .*{words}"):
        trained(path, resume=tmp_path / "forged.npz")


def test_arrays_that_nobody_takes_are_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, bomb = source(tmp_path), np.zeros(2**20)
    given: dict[str, Any] = examples()
    trained(path, steps=1).save(tmp_path / "out")
    state: dict[str, Any] = dict(np.load(tmp_path / "out" / "state.npz"))
    np.savez_compressed(tmp_path / "state.npz", bomb=bomb, **state)
    np.savez_compressed(tmp_path / "examples.npz", bomb=bomb, **given)
    np.savez_compressed(tmp_path / "held.npz", bomb=bomb, x=given["x"], labels=given["label"])
    read = Archive.read
    monkeypatch.setattr(Archive, "read", lambda archive, key: 1 / 0 if key == "bomb" else read(archive, key))
    assert refused(InputError, path, resume=tmp_path / "state.npz") == "E0943"
    assert refused(InputError, path, examples=tmp_path / "examples.npz") == "E0442"
    assert refused(InputError, path, held_out=tmp_path / "held.npz") == "E0442"


def test_a_training_has_as_many_steps_as_a_state_counts(tmp_path: Path) -> None:
    path = source(tmp_path)
    trained(path, steps=1).save(tmp_path / "out")
    assert refused(UsageError, path, steps=10**19) == "E0529"
    assert refused(UsageError, path, epochs=2**31) == "E0529"
    assert refused(UsageError, path, steps=2**31 - 1, resume=tmp_path / "out" / "state.npz") == "E0529"


@each([np.int32(1), np.zeros(0, np.int32), np.zeros(39, np.int32), np.zeros(41, np.int32)])
def test_a_held_out_set_has_a_label_for_each_row(labels: AnyArray, tmp_path: Path) -> None:
    np.savez(tmp_path / "held.npz", x=examples(40)["x"], labels=labels)
    assert refused(InputError, source(tmp_path), held_out=tmp_path / "held.npz") == "E0447"


@pytest.mark.long
def test_a_measure_that_is_not_finite_is_left_out(tmp_path: Path) -> None:
    """R² of labels that are all the same; the error of outputs or labels past what numbers hold."""
    path = source(tmp_path)
    for labels, found in ((np.ones((40, 3)), {"rmse"}), (np.full((40, 3), 1e300), set())):
        np.savez(tmp_path / "net_test.npz", x=examples(40)["x"], labels=labels)
        made = trained(path, epochs=1)
        assert made.history["epochs"][-1]["held_out"].keys() == found
        made.save(tmp_path / "out")
        trained(path, epochs=1, resume=tmp_path / "out" / "state.npz").save(tmp_path / "out")


RAGGED = {"x": [[1.0], [1.0, 2.0]]}
NO_COUNTS: tuple[Any, ...] = ("3", 2.0, 1.5, True, -1, np.nan, 2**4000)
NO_PATHS: tuple[Any, ...] = (5, {})
NO_ARRAYS: tuple[Any, ...] = (5, np.ones((50, 4)), RAGGED, {3: np.ones(50)})


@each(
    [
        *((name, value) for name in ("steps", "epochs", "seed", "cores", "microbatches") for value in NO_COUNTS),
        *((name, None) for name in ("target", "cores", "microbatches")),
        *((name, value) for name in ("weights", "resume") for value in NO_PATHS),
        *((name, value) for name in ("examples", "held_out") for value in NO_ARRAYS),
        ("target", 5),
    ]
)
def test_arguments_of_another_kind_are_refused(name: str, value: Any, tmp_path: Path) -> None:
    assert refused(UsageError, source(tmp_path), **{name: value}) == "E0529"


def test_arguments_are_as_arrays_are(tmp_path: Path) -> None:
    """Integers of NumPy, nested lists, and a held-out set that is no file."""
    held = {"x": examples(40)["x"].tolist(), "labels": examples(40)["label"]}
    made = trained(source(tmp_path), epochs=np.int64(2), cores=np.int8(2), seed=np.uint64(3), held_out=held)
    assert repr(made).startswith("<Training of net: 2 epochs, 6 steps, loss ")
    assert repr(made).endswith(" % on held-out examples>")
    assert made.state.seed == 3
    assert refused(InputError, source(tmp_path), held_out={"x": held["x"]}) == "E0441"


COLUMN = """
weights random(seed=0)
optimizer sgd(rate=0.1)
model net(x: f32[4, 2]) -> f32[4, 1]:
    weight w: f32[2, 1]
    return x @ w
"""


@each(
    [
        ({"label": np.eye(3)[examples()["label"]]}, "train takes i32[16]; the first size may be another\nhelp: label.argmax(axis=1) makes"),
        ({"label": examples()["label"][:, None]}, "help: label.reshape(-1) has that shape"),
        ({"label": examples()["label"].astype(np.float32)}, 'label.astype("int32") makes integers'),
        ({"labels": np.zeros(50)}, "but train has no such input\nhelp: train takes x and label"),
        ({"label": None}, "no array label, which train takes as i32[16]\nhelp: train takes x and label"),
        ({"x": None, "label": None, "y": np.zeros(50)}, "no array x, which train takes as f32[16, 4]\nhelp: "),
    ]
)
def test_what_mends_examples_that_do_not_fit(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    given = {name: array for name, array in (examples() | changes).items() if array is not None}
    with pytest.raises(InputError) as caught:
        trained(source(tmp_path), examples=given)
    assert words in str(caught.value)


def test_a_column_of_labels_is_reshaped(tmp_path: Path) -> None:
    path = tmp_path / "column.tpu"
    path.write_text(f"{COLUMN}\ntrain(x: f32[4, 2], y: f32[4, 1]) -> f32[]:\n    return mean_squared_error(net(x), y)\n")
    with pytest.raises(InputError, match=r"help: train takes f32\[4, 1\].*\nhelp: y.reshape\(-1, 1\) has that shape"):
        trained(path, examples={"x": np.ones((8, 2)), "y": np.ones(8)})


def test_a_model_of_one_column_is_told_of_the_squared_error(tmp_path: Path) -> None:
    path = tmp_path / "column.tpu"
    path.write_text(COLUMN)
    with pytest.raises(
        CompileError, match=r"`train\(x: f32\[4, 2\], labels: f32\[4, 1\]\) -> f32\[\]:`.*mean_squared_error\(net\(x\), labels\)"
    ):
        trained(path)


def test_a_label_that_is_no_class_is_named_before_the_first_step(tmp_path: Path) -> None:
    text = source(tmp_path).read_text().replace(" in [0, 2]", "")
    given = examples()
    given["label"][49] = 3
    with pytest.raises(InputError, match=r"net\.tpu:16:12: .*E0454: label 3 at \[49\] is outside the 3 classes of cross_entropy"):
        trained(source(tmp_path, text=text), examples=given, steps=0)
    reshaped = text.replace("label)", "reshape(label, (batch,)))")
    for cores in (1, 2):
        with pytest.raises(
            InputError, match=r"net\.tpu:13:12: .*E0454: label 3 at \[\d+\] is outside the 3 classes(.*\n)*net\.tpu:16:26: "
        ):
            trained(source(tmp_path, text=reshaped), examples=given, epochs=1, cores=cores)


def test_the_losses_of_an_epoch_are_not_copied_at_each_step(tmp_path: Path) -> None:
    """states share them; each has its own number of them, those too that go on from one that others went on from."""
    path = source(tmp_path)
    session = started(tpucc.Source("net.tpu", path.read_text()), tmp_path, "net", {}, Settings(epochs=1, examples=examples(100)))
    found = [session.state for _ in session.run()]
    first, second, third = (state.losses for state in found[:3])
    assert isinstance(third, Grown)
    assert isinstance(second, Grown)
    assert third._numbers is second._numbers
    assert (len(first), len(second), len(third)) == (1, 2, 3)
    assert [*second, third[2]] == list(third) == third[:]
    other = Grown.by(second, 5.0)
    assert (other[-1], third[-1] == 5.0, list(other)[:2]) == (5.0, False, list(second))
    with pytest.raises(IndexError):
        second[2]


@each(
    [
        (6, 8, 1, "batch 6 can't be divided among 8 cores: 8 and 16 can"),
        (16, 1, 32, "batch 16 can't be divided among 32 microbatches: 32 and 64 can"),
        (20, 4, 2, "batch 20 can't be divided among 4 cores of 2 microbatches: 16 and 24 can"),
    ]
)
def test_a_batch_that_cannot_be_divided_says_among_what(batch: int, cores: int, microbatches: int, words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"E0508: .*\n(.*\n)*help: {words}"):
        trained(source(tmp_path), cores=cores, microbatches=microbatches, params={"batch": batch})


def test_a_state_is_no_archive_of_weights_and_weights_are_no_state(tmp_path: Path) -> None:
    path = source(tmp_path)
    trained(path, steps=1).save(tmp_path / "out")
    with pytest.raises(InputError, match=r"E0424: .*state\.npz is a state of a training, not weights\nhelp: weights\.npz, .*--resume"):
        trained(path, weights=tmp_path / "out" / "state.npz")
    with pytest.raises(InputError, match=r"E0943: .*it has no states.*\nhelp: .*--weights takes weights\.npz"):
        trained(path, resume=tmp_path / "out" / "weights.npz")


def one_weight(values: str, optimizer: str, folder: Path, x: AnyArray, steps: int = 1, more: str = "") -> tpucc.Training:
    """A training of `w`, which begins at 1, and of what `more` declares: on all examples at each step, for the least mean of `values`."""
    path = folder / "one.tpu"
    size = len(x)
    path.write_text(f"""
weights "one.npz"
optimizer {optimizer}
model net(x: f32[{size}, 1]) -> f32[{size}, 1]:
    weight w: f32[1]
{more}    return {values}

train(x: f32[{size}, 1]) -> f32[]:
    return mean(net(x))
""")
    known = {"w": [1.0], "gamma": [1.0], "beta": [0.0], "average": [0.0], "variance": [1.0]}
    np.savez(folder / "one.npz", **{key: np.array(value, np.float32) for key, value in known.items() if key == "w" or key in more})
    return trained(path, steps=steps, examples={"x": x})


def test_adam_by_hand(tmp_path: Path) -> None:
    """With a gradient of 4, m = 0.5·4 = 2, v = 0.25·16 = 4, and the rate is 0.5·√(1 - 0.75) ÷ (1 - 0.5) = 0.5: w - 0.5·2 ÷ (√4 + 2)."""
    made = one_weight("x * w", "adam(rate=0.5, beta1=0.5, beta2=0.75, epsilon=2.0)", tmp_path, np.full((2, 1), 4, np.float32))
    assert made.weights["w"].tolist() == [0.75]


def test_the_norm_of_a_large_gradient_and_of_a_small_one_is_finite_and_not_zero(tmp_path: Path) -> None:
    """Their squares are outside of float32."""
    for size in (2.0**80, 2.0**-80):
        made = one_weight("x * w", "sgd(rate=1e-30)", tmp_path, np.full((2, 1), size, np.float32))
        assert made.history["epochs"][-1]["gradients"]["w"] == size


def test_averages_that_two_normalisations_share_move_twice(tmp_path: Path) -> None:
    """By batches with the means 4 and then 8: 0.5·(0.5·0 + 0.5·4) + 0.5·8 = 5. Their variances are 1 and 4: 0.5·(0.5·1 + 0.5·1) + 0.5·4."""
    declared = "".join(f"    weight {key}: f32[1]\n" for key in ("gamma", "beta", "average", "variance"))
    twice = " + ".join(f"batch_norm({x}, gamma, beta, average, variance, momentum=0.5)" for x in ("x", "x * 2.0"))
    made = one_weight(f"({twice}) * w", "sgd(rate=0.5)", tmp_path, np.array([[3.0], [5.0]], np.float32), more=declared)
    assert made.weights["average"].tolist() == [5.0]
    assert made.weights["variance"].tolist() == [2.5]


def test_each_epoch_has_an_order_of_its_own() -> None:
    """All examples, once each, drawn by the seed."""
    all_of = Examples({"x": np.arange(40)}, 40, 10)
    epochs = [
        [part["x"].tolist() for step in range(4) for part in all_of.parts(seed, 4 * epoch + step, 1)] for seed in (0, 1) for epoch in (0, 1)
    ]
    assert len({str(epoch) for epoch in epochs}) == 4
    assert all(sorted(row for rows in epoch for row in rows) == list(range(40)) for epoch in epochs)
    assert all_of.parts(0, 5, 2)[1]["x"].tolist() == epochs[1][1][5:]
