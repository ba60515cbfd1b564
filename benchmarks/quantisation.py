"""Four networks in 8 bits: tpucc's ways of choosing ranges beside those of PyTorch and ONNX Runtime, on the same weights and rows.

    python benchmarks/quantisation.py            # prints the table
    python benchmarks/quantisation.py --write    # writes it into docs/calibration.md

Needs torch, onnx and onnxruntime. Each network ends at its logits. It is calibrated on the 100 rows beside its source and measured on the
599 held-out ones: signal-to-noise ratio against float32, and accuracy. PyTorch quantises in FX graph mode, with 8-bit activations over
their whole range, weights of 8 bits a channel, and its own kernels; the LSTM's functions stay in float32. ONNX Runtime quantises PyTorch's
export (QDQ, weights a channel) by `quantize_static`.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import tpucc
from tpucc.onnxruntime import session

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "calibration.md"
BEGIN, END = "<!-- made by benchmarks/quantisation.py -->", "<!-- end -->"
BATCH = 100
PROGRAMS = {
    "digits CNN": "05_digits_cnn",
    "digits LSTM": "06_digits_lstm",
    "digits ViT": "gallery/digits_vit",
    "digits MobileNet": "gallery/digits_mobilenet",
}
FLOAT_SUMS: Mapping[str, Any] = {"place": {"float_sums": True}}
WAYS: Mapping[str, Mapping[str, Any]] = {
    "minmax": {},
    "percentile 99.99": {"settings": {"calibrate": {"method": "percentile"}}},
    "minmax, one scale for all weights": {"settings": {"quantise": {"granularity": "per_tensor"}}},
    "minmax, bias correction": {"settings": {"quantise": {"bias_correction": True}}},
    "minmax, float sums": {"settings": FLOAT_SUMS},
    "minmax, 16 bits": {"activation_bits": 16},
}
"""The rows of tpucc: options of `tpucc.compile`."""

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Network:
    """A program that ends at its logits: its source, folder, weights, and its rows to calibrate on and to measure on, NHWC."""

    source: str
    folder: Path
    weights: Mapping[str, Array]
    calibration: Array
    images: Array
    labels: Array


def network(name: str) -> Network:
    path = ROOT / "programs" / f"{PROGRAMS[name]}.tpu"
    text = path.read_text()
    source = re.sub(r"digit = softmax\((.*)\)\n", r"digit = \1\n", text[: text.index("\nexamples ")])
    named = re.search(r'^calibration "(.*)"', text, re.MULTILINE)
    assert named is not None
    test = _arrays(path.with_name(f"{path.stem}_test.npz"))
    calibration = _arrays(path.with_name(named[1]))["image"]
    return Network(source, path.parent, _arrays(path.with_suffix(".npz")), calibration, test["image"], test["labels"])


def _arrays(path: Path) -> dict[str, Array]:
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


# tpucc


def ours(net: Network, **options: Any) -> tuple[Array, Array]:
    """The logits of tpucc, in float32 and in integers."""
    exe = tpucc.compile_source(net.source, folder=net.folder, **options)
    assert exe.compilation is not None
    from tpucc.runtime.check import float_reference

    assert exe.compilation.meant is not None
    return float_reference(exe.compilation.meant, {"image": net.images})["digit"], exe.run(image=net.images)["digit"]


# ONNX Runtime


def onnx_runtime(name: str, net: Network, method: str) -> tuple[Array, Array]:
    """Of the network as PyTorch exports it."""
    import torch
    from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process
    from torch_networks import NETWORKS

    quiet = contextlib.redirect_stdout(sys.stderr)  # both report progress where the table goes
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), quiet:
        warnings.simplefilter("ignore")
        paths = [str(Path(folder) / kind) for kind in ("float.onnx", "ready.onnx", "int8.onnx")]
        rows = (torch.from_numpy(net.calibration),)
        torch.onnx.export(NETWORKS[name](net.weights).eval(), rows, paths[0], input_names=["image"], dynamo=False)
        quant_pre_process(paths[0], paths[1])
        quantize_static(
            paths[1],
            paths[2],
            _Reader(net.calibration),
            quant_format=QuantFormat.QDQ,
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            calibrate_method=CalibrationMethod[method],
        )
        exact, found = (_in_rounds(session(Path(path), 0, optimised=False), net.images) for path in (paths[0], paths[2]))
    return exact, found


class _Reader:
    """ONNX Runtime asks for one batch after the other, and for None at the end."""

    def __init__(self, rows: Array) -> None:
        self._parts = iter([{"image": rows[:BATCH]}])

    def get_next(self) -> Mapping[str, Array] | None:
        return next(self._parts, None)


def _in_rounds(session: Any, images: Array) -> Array:
    found = [
        session.run(None, {"image": np.resize(images[i : i + BATCH], (BATCH, *images.shape[1:]))})[0] for i in range(0, len(images), BATCH)
    ]
    return np.concatenate(found)[: len(images)]


# PyTorch


def pytorch(name: str, net: Network, histogram: bool) -> tuple[Array, Array]:
    import torch
    from torch.ao import quantization as q
    from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx
    from torch_networks import NETWORKS

    torch.manual_seed(0)
    torch.backends.quantized.engine = "onednn"
    observer = q.HistogramObserver if histogram else q.MinMaxObserver
    activation = observer.with_args(dtype=torch.quint8, qscheme=torch.per_tensor_affine, reduce_range=False)
    weight = q.PerChannelMinMaxObserver.with_args(dtype=torch.qint8, qscheme=torch.per_channel_symmetric)
    mapping = q.get_default_qconfig_mapping("onednn").set_global(q.QConfig(activation=activation, weight=weight))
    for function in (torch.sigmoid, torch.tanh):  # quantised behind a part of a tensor, they clip their operand to their own result's range
        mapping.set_object_type(function, None)
    model = NETWORKS[name](net.weights).eval()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = torch.from_numpy(net.calibration)
        prepared = prepare_fx(model, mapping, (rows,))
        prepared(rows)
        quantised, images = convert_fx(prepared), torch.from_numpy(net.images)
        return model(images).numpy(), quantised(images).numpy()


# the table


def measured(name: str) -> Iterator[tuple[str, str, str]]:
    """For each way its name, the ratio in dB, and the accuracy in percent."""
    net = network(name)
    reference, _ = ours(net)
    yield "float32", "", _accuracy(net, reference)

    def row(way: str, run: Callable[[], tuple[Array, Array]]) -> tuple[str, str, str]:
        exact, found = run()
        if not np.allclose(exact, reference, rtol=1e-3, atol=1e-3):
            raise ValueError(f"{way}: another network: logits differ by {np.abs(exact - reference).max()}")
        return way, f"{_ratio(reference, found):.1f}", _accuracy(net, found)

    for way, options in WAYS.items():
        yield row(f"tpucc, {way}", lambda options=options: ours(net, **options))
    yield row("PyTorch, minmax", lambda: pytorch(name, net, histogram=False))
    yield row("PyTorch, histogram", lambda: pytorch(name, net, histogram=True))
    for method in ("MinMax", "Percentile", "Entropy"):
        yield row(f"ONNX Runtime, {method.lower()}", lambda method=method: onnx_runtime(name, net, method))


def _ratio(exact: Array, found: Array) -> float:
    real = exact.astype(np.float64)
    return 10 * math.log10(np.square(real).sum() / np.square(found - real).sum())


def _accuracy(net: Network, logits: Array) -> str:
    return f"{100 * (logits.argmax(axis=1) == net.labels).mean():.1f} %"


def table() -> str:
    columns = [list(measured(name)) for name in PROGRAMS]
    lines = [f"| | {' | '.join(PROGRAMS)} |", "|---|" + "---|" * len(PROGRAMS)]
    for row in zip(*columns, strict=True):
        cells = [f"{ratio} dB, {accuracy}" if ratio else accuracy for _, ratio, accuracy in row]
        lines.append(f"| {row[0][0]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    made = table()
    print(made)
    if "--write" in arguments:
        head, _, rest = PAGE.read_text().partition(BEGIN)
        PAGE.write_text(f"{head}{BEGIN}\n\n{made}\n\n{END}{rest.partition(END)[2]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
