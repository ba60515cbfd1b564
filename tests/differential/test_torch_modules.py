"""PyTorch modules read by `tpucc.from_torch`: what they compute, and what is said of those that can't be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tpucc.interop.pytorch import plain_module
from tpucc.ops.evaluate import evaluate

torch = pytest.importorskip("torch", reason="PyTorch is not installed; it comes with the extra: pip install -e '.[dev,torch]'")
pytest.importorskip("onnxscript", reason="onnxscript is not installed; it comes with the same extra")

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


class Images(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 9, 3, padding=1, stride=2)
        self.norm = torch.nn.BatchNorm2d(9)
        self.depth = torch.nn.Conv2d(9, 9, 3, padding=1, groups=9)
        self.fc = torch.nn.Linear(9 * 2 * 2, 5)

    def forward(self, image: Any) -> Any:
        h = torch.relu(self.norm(self.stem(image)))
        h = torch.max_pool2d(h + torch.nn.functional.silu(self.depth(h)), 2)
        return self.fc(torch.flatten(h, 1))


class Sequences(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(20, 6)
        self.lstm = torch.nn.LSTM(6, 7, batch_first=True)
        self.fc = torch.nn.Linear(7, 3)

    def forward(self, ids: Any) -> Any:
        return self.fc(self.lstm(self.table(ids))[0][:, -1])


class Joined(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = torch.nn.Linear(4, 6), torch.nn.Linear(3, 6)

    def forward(self, left: Any, right: Any) -> Any:
        return torch.tanh(self.a(left)) * torch.sigmoid(self.b(right))


class Several(torch.nn.Module):
    """Arguments of every kind; the results have names."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(4, 3)

    def forward(self, x: Any, /, *xs: Any, scale: Any = None, **more: Any) -> Any:
        h = self.fc(x) if scale is None else self.fc(x) * scale
        return {"logits": sum((self.fc(other) for other in (*xs, *more.values())), h), "x": h}


class Nested(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)

    def forward(self, left: Any, right: Any) -> Any:
        h = self.fc(left)
        return {"left": left, "fc.weight": h, "same": h, "parts": {"sum": left * 2 + right, "rest": [h - 1, None]}}


class Attending(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Any) -> Any:
        return x + self.attention(x, x, x, need_weights=False)[0]


class Shaped(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return x * 2 if x.shape[0] == 1 else x + 1


class Squeezed(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.tanh(x.squeeze())


class OneRow(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return x.reshape(8) * torch.ones(1, 8)


class Branching(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        if x.sum() > 0:
            return x
        return x * 2


class Counting(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return x[:, : int(x.abs().max().item())]


class Unknown(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.erfinv(x / 10)


class Stepping(torch.nn.Module):
    """One step of a recurrence."""

    def __init__(self) -> None:
        super().__init__()
        self.x, self.h = torch.nn.Linear(3, 2), torch.nn.Linear(2, 2)

    def forward(self, x: Any, h: Any) -> Any:
        return torch.tanh(self.x(x) + self.h(h[0]))[None]


class Product(torch.nn.Module):
    def forward(self, x: Any, y: Any) -> Any:
        return x @ y


CASES = {
    "images": (Images, (torch.rand(3, 3, 8, 8),)),
    "sequences": (Sequences, (torch.randint(0, 20, (4, 5)),)),
    "two inputs": (Joined, (torch.rand(5, 4), torch.rand(5, 3))),
    "a batch of one": (Joined, (torch.rand(1, 4), torch.rand(1, 3))),
    "one image": (Images, (torch.rand(1, 3, 8, 8),)),
    "one sequence": (Attending, (torch.rand(1, 5, 8),)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_module_computes_the_same(name: str) -> None:
    torch.manual_seed(1)
    kind, example = CASES[name]
    module = kind()
    next(module.children()).eval()
    modes = [part.training for part in module.modules()]
    model = tpucc.from_torch(module, example)
    assert [part.training for part in module.modules()] == modes
    assert model.name == kind.__name__.lower()
    assert f"param batch = {len(example[0])}\n" in model.source
    names = list(torch.export.export(module.eval(), example).graph_signature.user_inputs)
    given = {name: value.numpy() for name, value in zip(names, example, strict=True)}
    exe = model.compile()
    assert exe.graph is not None
    arrays = {name: value.transpose(0, 2, 3, 1) if value.ndim == 4 else value for name, value in given.items()}
    arrays = {name: value.astype(exe.runtime.inputs[name].numpy) for name, value in arrays.items()}
    graph = exe.compilation.graph
    (found,) = (evaluate(graph, arrays)[output.node] for output in graph.outputs)
    with torch.no_grad():
        expected = module(*example).numpy()
    assert np.abs(found - expected).max() <= 1e-5 * max(1, np.abs(expected).max())


@each([False, True])
def test_the_matrices_of_a_recurrence_are_called_after_their_module(dynamo: bool, tmp_path: Path) -> None:
    class Reader(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cells = torch.nn.GRU(3, 2, num_layers=2, batch_first=True)

        def forward(self, x: Any) -> Any:
            return self.cells(x)[1][1]

    module, x = torch.nn.Sequential(Reader(), torch.nn.Linear(2, 5)).eval(), torch.rand(4, 3, 3)
    torch.onnx.export(module, (x,), tmp_path / "net.onnx", dynamo=dynamo, external_data=False)
    parts = ("kernel", "recurrent", "bias", "recurrent_bias")
    wanted = {f"{start}.{part}" for start in ("0.cells", "0.cells.1") for part in parts} | {"1.weight", "1.bias"}
    assert set(tpucc.import_onnx(tmp_path / "net.onnx").weights) == wanted


@each(
    [
        lambda module: torch.compile(torch.compile(module)),
        lambda module: torch.compile(torch.nn.DataParallel(module)),
        lambda module: torch.nn.DataParallel(torch.compile(module)),
    ]
)
def test_a_module_is_found_in_several_that_are_around_it(wrap: Any) -> None:
    for module in (Joined(), torch.nn.Linear(2, 2)):
        assert plain_module(wrap(module)) is module


def test_a_batch_that_states_have_second_is_a_param() -> None:
    """Where no size is one, a comment says that all are those of the example."""
    model = tpucc.from_torch(Stepping(), (torch.rand(4, 3), torch.rand(1, 4, 2)))
    assert "param batch = 4\n" in model.source
    assert "(x: f32[batch, 3], h: f32[1, batch, 2])" in model.source
    assert "\n# All sizes are those of the example" in tpucc.from_torch(Product(), (torch.rand(4, 3), torch.rand(3, 2))).source


@pytest.mark.parametrize(("kind", "head"), [(Shaped, "f32[1, 8]"), (Squeezed, "f32[8]"), (OneRow, "f32[1, 8]")])
def test_a_module_of_which_more_rows_are_not_each_row_is_read_for_one(kind: Any, head: str) -> None:
    x = torch.rand(1, 8)
    model = tpucc.from_torch(kind(), x)
    assert f"(x: f32[1, 8]) -> {head}:" in model.source
    assert "\n# All sizes are those of the example: for other batches" in model.source
    graph = model.compile().compilation.graph
    (found,) = (evaluate(graph, {"x": x.numpy()})[output.node] for output in graph.outputs)
    assert np.abs(found - kind()(x).numpy()).max() < 1e-5


@each(
    [
        ({"y": [1.5, None]}, "the result y_0 of forward is float"),
        (("no", None), "the result 0 of forward is str"),
        (True, "the result of forward is bool"),
    ]
)
def test_results_that_are_no_tensors_are_named(result: object, says: str) -> None:
    class Odd(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return result

    with pytest.raises(tpucc.UsageError, match=f"E1015: {says}, not a tensor"):
        tpucc.from_torch(Odd(), torch.rand(2, 3))


def test_too_many_values_for_a_module_with_arguments_by_name() -> None:
    class Named(torch.nn.Module):
        def forward(self, x: Any, **more: Any) -> Any:
            return x

    with pytest.raises(tpucc.UsageError, match=r"2 values, and forward takes 1(.|\n)*a dict of tensors gives others by their names"):
        tpucc.from_torch(Named(), (torch.rand(2, 3), torch.rand(2, 3)))


@pytest.mark.parametrize("wrapped", [torch.compile, torch.nn.DataParallel])
def test_a_module_is_read_through_what_is_around_it(wrapped: Any) -> None:
    model = tpucc.from_torch(wrapped(Joined()), (torch.rand(5, 4), torch.rand(5, 3)), name="my net/1")
    assert model.name == "my_net_1"
    assert model.source.startswith("# From the PyTorch module Joined (opset 20).\nparam batch = 5\n")
    assert "model my_net_1(left: f32[batch, 4], right: f32[batch, 3]) -> f32[batch, 6]:" in model.source
    model.compile()


def test_arguments_without_a_name_of_their_own_and_results_with_one() -> None:
    torch.manual_seed(1)
    module, parts = Several(), torch.rand(3, 5, 4)
    exe = tpucc.from_torch(module, tuple(parts)).compile()
    assert list(exe.runtime.inputs) == ["x", "xs_0", "xs_1"]
    found = exe.run(dict(zip(exe.runtime.inputs, parts.numpy(), strict=True)))
    expected = module(*parts)
    assert list(found) == ["logits", "x_out"]
    assert np.abs(found["logits"] - expected["logits"].detach().numpy()).max() < 0.05


def test_one_tensor_for_two_inputs_and_results_that_are_inputs_or_inside_each_other() -> None:
    x = torch.rand(5, 4)
    for example in ((x, x), {"left": x, "right": x}):
        exe = tpucc.from_torch(Nested(), example).compile()
        graph = exe.compilation.graph
        assert graph is not None
        assert [output.name for output in graph.outputs] == ["left_out", "fc_weight_out", "same", "parts_sum", "parts_rest_0"]
        values = evaluate(graph, {"left": np.full((5, 4), 3, np.float32), "right": np.ones((5, 4), np.float32)})
        assert (values[graph.outputs[0].node] == 3).all()
        assert (values[graph.outputs[3].node] == 7).all()


class Through(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x, self.fc(x)


def test_a_result_that_is_an_input_has_a_name_of_its_own() -> None:
    model = tpucc.from_torch(Through(), torch.rand(5, 4))
    assert list(model.compile().run(np.ones((5, 4), np.float32))) == ["x_out", "linear"]
    assert tpucc.from_torch(torch.nn.Identity(), torch.rand(5, 4)).source.endswith("_out\n")


class Keyed(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        return {"a_b": torch.relu(x), "a": {"b": x * 2.0}, "z": x * 3.0}


class Silent(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[Any, ...]:
        return None, []


def test_keys_that_become_one_name_and_what_comments_call_the_module() -> None:
    assert list(tpucc.from_torch(Keyed(), torch.rand(5, 4)).compile().run(np.ones((5, 4), np.float32))) == ["a_b", "a_b_2", "z"]
    source = tpucc.from_torch(torch.nn.Conv2d(3, 4, 3), torch.rand(2, 3, 8, 8)).source
    assert "and [batch, channels, height, width] in the module:" in " ".join(source.replace("#", " ").split())


@pytest.mark.parametrize(
    ("module", "example", "says"),
    [
        (Silent(), torch.rand(5, 4), "forward returns no tensor"),
        (Joined().state_dict(), torch.rand(5, 4), "from_torch takes a torch.nn.Module, found OrderedDict"),
        (Joined, torch.rand(5, 4), "from_torch takes a module, found the class Joined\nhelp: make a module of it: call the class"),
        (Unknown(), torch.rand(5, 4), "PyTorch has no ONNX form for the operator prims.erf_inv"),
        (Branching(), torch.rand(1, 4), "branches on a value of a tensor, as with if or while (test_torch_modules.py, line "),
        (Branching(), torch.rand(3, 4), ": if x.sum() > 0:), and PyTorch"),
        (Counting(), torch.rand(3, 4), "makes a number of Python of a tensor's value (test_torch_modules.py, line "),
        (Joined(), np.ones((5, 4)), "the example of left is ndarray, not a tensor"),
        (Joined(), (torch.rand(5, 4),) * 3, "the example has 3 values, and forward takes 2"),
        (Joined(), {"left": torch.rand(5, 4), "write": torch.rand(5, 3)}, "forward takes no argument write"),
        (Joined(), (torch.rand(5, 4), torch.rand(5, 2)), "the module itself fails on this example: RuntimeError"),
        (Joined(), torch.rand(5, 4), "the module itself fails on this example: TypeError"),
    ],
)
def test_what_is_said_of_others(module: Any, example: Any, says: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(tpucc.UsageError) as caught:
        tpucc.from_torch(module, example)
    assert says in str(caught.value)
    assert caught.value.diagnostics[0].code == "E1015"
    assert capfd.readouterr() == ("", "")


def test_modules_of_torch_script_are_refused() -> None:
    module, x = torch.nn.Linear(4, 3), torch.rand(5, 4)
    for made in (torch.jit.trace(module, x), torch.jit.script(module)):
        with pytest.raises(tpucc.UsageError, match=r"E1015.* one that torch.jit has made of Linear"):
            tpucc.from_torch(made, x)
